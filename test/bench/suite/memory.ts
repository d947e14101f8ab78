// What servers take of memory: idle, for a connection, an open stream, a large message, and after many calls. Each
// server is alone, since nothing here is a matter of time.
import { connect } from "../../harness/server_process.ts";
import { h2load } from "./h2load.ts";
import { peakRssMib, resetPeak, rssMib } from "./process_tree.ts";
import type { MemoryResult, Skipped } from "./results.ts";
import { startServer } from "./run_rows.ts";
import { BARE_DENO, BARE_NODE, CPP, PYTHON, type ServerSpec, TENSORLET, TENSORLET_WORKER } from "./servers.ts";
import { Unavailable } from "./server_process.ts";
import type { Workbench } from "./workbench.ts";

const SERVERS: readonly ServerSpec[] = [TENSORLET, TENSORLET_WORKER, PYTHON, CPP, BARE_DENO, BARE_NODE];
const CONNECTIONS = 200;
const STREAMS = 500;
const STREAM_CONNECTIONS = 10;
/** A tensor whose message just fits into 64 MiB. */
const MESSAGE_BYTES = 64 * 1024 * 1024 - 1024;
/** What a server may do in peace before its memory is read. */
const SETTLE_MS = 700;

/** How many small calls there are: so many times so many. */
export interface MemoryOptions {
  readonly parts: number;
  readonly calls: number;
  readonly progress: (text: string) => void;
}

/** Measures one server after the other. */
export async function measureMemory(
  bench: Workbench,
  options: MemoryOptions,
): Promise<{ readonly memory: MemoryResult[]; readonly skipped: Skipped[] }> {
  const memory: MemoryResult[] = [];
  const skipped: Skipped[] = [];
  for (const spec of SERVERS) {
    options.progress(`memory: ${spec.name}`);
    try {
      memory.push(await measureServer(spec, bench, options, skipped));
    } catch (error) {
      skipped.push(reasonOf(`memory: ${spec.name}`, error));
    }
  }
  return { memory, skipped };
}

async function measureServer(
  spec: ServerSpec,
  bench: Workbench,
  options: MemoryOptions,
  skipped: Skipped[],
): Promise<MemoryResult> {
  await using server = await startServer(spec, bench);
  const attempt = <T>(what: string, work: () => Promise<T>) =>
    work().catch((error) => void skipped.push(reasonOf(`memory ${what}: ${spec.name}`, error)));
  await settle();
  const idle = rssMib(server.pid);
  const port = Number(server.address.split(":")[1]);
  const connectionKib = await attempt("of connections", () => ofConnections(port, server.pid));
  const streamKib = await attempt("of streams", () => ofStreams(port, server.pid));
  const afterCalls = await attempt("after calls", () => ofCalls(server.address, server.pid, bench, options));
  const message = await attempt("of a message", () => ofMessage(server.address, server.pid, bench));
  const known = Object.entries({ connectionKib, streamKib, afterCalls, message }).filter(([, it]) => it !== undefined);
  return { server: spec.name, idle, ...Object.fromEntries(known) };
}

async function ofConnections(port: number, pid: number): Promise<number> {
  const before = rssMib(pid);
  using clients = new DisposableStack();
  await Promise.all(Array.from({ length: CONNECTIONS }, () => isReady(clients.use(connect(port)))));
  await settle();
  return (rssMib(pid) - before) / CONNECTIONS * 1024;
}

async function ofStreams(port: number, pid: number): Promise<number> {
  using clients = new DisposableStack();
  const connected = Array.from({ length: STREAM_CONNECTIONS }, () => clients.use(connect(port)));
  await Promise.all(connected.map(isReady));
  await settle();
  const before = rssMib(pid);
  for (let i = 0; i < STREAMS; i++) {
    const chat = connected[i % STREAM_CONNECTIONS]!.ChatStream();
    chat.on("error", () => {}); // it is cancelled below
    chat.on("data", () => {});
    clients.defer(() => chat.cancel());
  }
  await settle();
  return (rssMib(pid) - before) / STREAMS * 1024;
}

async function ofMessage(address: string, pid: number, bench: Workbench): Promise<number> {
  const client = await bench.client();
  await client.do("large", { address, bytes: 4096 });
  await settle();
  const before = rssMib(pid);
  resetPeak(pid);
  await client.do("large", { address, bytes: MESSAGE_BYTES });
  return peakRssMib(pid) - before;
}

async function ofCalls(address: string, pid: number, bench: Workbench, options: MemoryOptions): Promise<number[]> {
  const after: number[] = [];
  const load = { address, path: "/inference.v1.ModelInference/Predict", body: bench.body("small") };
  for (let part = 0; part < options.parts; part++) {
    await h2load({
      ...load,
      connections: 4,
      streams: 16,
      requests: options.calls,
      protocol: "grpc",
      minBytes: 19,
    });
    await settle();
    after.push(rssMib(pid));
  }
  return after;
}

function isReady(client: ReturnType<typeof connect>): Promise<void> {
  return new Promise((resolve, reject) =>
    client.waitForReady(Date.now() + 20_000, (error?: Error) => error ? reject(error) : resolve())
  );
}

function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
}

function reasonOf(what: string, error: unknown): Skipped {
  const text = error instanceof Error ? error.message : String(error);
  return { what, why: error instanceof Unavailable ? text : `failed: ${text}` };
}
