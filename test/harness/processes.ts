// Connections to each of a server's processes.
import { answer } from "./grpc_client.ts";
import { connect } from "./server_process.ts";

export type Client = ReturnType<typeof connect>;

/** A function `pid` that tells in which process it runs. */
export const PID =
  `defineModel({ output: { dtype: "float32", shape: [1] }, predict: () => Float32Array.of(Deno.pid) })`;

/** The process that a connection leads to, where that serves {@linkcode PID}. */
export async function pidBehind(client: Client): Promise<number> {
  const { output_tensor } = await answer<{ readonly output_tensor: readonly number[] }>((done) =>
    client.Predict({ model_id: "pid" }, done)
  );
  return output_tensor[0]!;
}

/** A connection to each process: which one takes a connection is the kernel's choice. */
export async function connectToEach(
  port: number,
  pids: readonly number[],
): Promise<Disposable & { readonly clients: readonly Client[] }> {
  const byPid = new Map<number, Client>();
  while (!pids.every((pid) => byPid.has(pid))) {
    const client = connect(port);
    const pid = await pidBehind(client);
    if (byPid.has(pid) || !pids.includes(pid)) client.close();
    else byPid.set(pid, client);
  }
  return {
    clients: pids.map((pid) => byPid.get(pid)!),
    [Symbol.dispose]: () => byPid.forEach((client) => client.close()),
  };
}
