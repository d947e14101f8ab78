// A real Redis on a port of its own, which tests may stop and start again. It keeps nothing on disk.

export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  start(): Promise<void>;
  /** As `kill -9`. */
  kill(): Promise<void>;
  /** It does not answer until it is resumed. */
  pause(): void;
  resume(): void;
}

/** Starts a server; Debian's package redis-server has it. */
export async function startRedis(): Promise<RedisServer> {
  const probe = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = probe.addr;
  probe.close();
  let child: Deno.ChildProcess | undefined;
  const server: RedisServer = {
    url: `redis://127.0.0.1:${port}/1`,
    async start() {
      child = new Deno.Command("redis-server", {
        args: ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
        stdin: "null",
        stdout: "null",
        stderr: "null",
      }).spawn();
      for (;;) {
        const answers = await Deno.connect({ port, hostname: "127.0.0.1" }).then(
          (conn) => (conn.close(), true),
          () => false,
        );
        if (answers) return;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    async kill() {
      child?.kill("SIGKILL");
      await child?.status;
      child = undefined;
    },
    pause: () => child?.kill("SIGSTOP"),
    resume: () => child?.kill("SIGCONT"),
    [Symbol.asyncDispose]: () => server.kill(),
  };
  await server.start();
  return server;
}
