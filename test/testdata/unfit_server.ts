// A supervised server that says by itself what its workers would give it reason to say: that `stuck` cannot be ended,
// and that `hang` is busy.
import { defineModel, serve } from "tensorlet";
import { type Settings, SUPERVISED } from "../../runtime/host/control.ts";
import { supervise } from "../../runtime/host/supervise.ts";
import { supervisorLink } from "../../runtime/host/supervised.ts";

const SETTINGS: Settings = {
  hostname: "127.0.0.1",
  port: 0,
  httpPort: undefined,
  hasChosenHttpPort: false,
  processes: Number(Deno.args[1] ?? 1),
  graceMs: 10_000,
  drainMs: 20_000,
  logFormat: "text",
  logLevel: "info",
};

async function serveSupervised(): Promise<void> {
  const link = supervisorLink()!;
  const { port, reusePort, verdicts } = await link.start(SETTINGS);
  const unfit = Promise.withResolvers<{ readonly function: string }>();
  const busy = new Set<string>();
  const server = await serve({
    pid: defineModel({ predict: () => Float32Array.of(Deno.pid), output: { dtype: "float32", shape: [1] } }),
    stuck: defineModel({
      output: { dtype: "float32", shape: [1] },
      predict() {
        unfit.resolve({ function: "stuck" });
        return Float32Array.of(Deno.pid);
      },
    }),
    hang: defineModel({
      async *stream(_inputs, ctx) {
        busy.add("hang");
        yield "first";
        await new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve(), { once: true }));
        busy.delete("hang");
      },
    }),
    // Ends when whoever listens there closes the connection.
    wait: defineModel({
      params: { until: { type: "integer" } },
      async *stream(_inputs, ctx) {
        using connection = await Deno.connect({ hostname: "127.0.0.1", port: ctx.params.until! });
        yield "first";
        await connection.read(new Uint8Array(1));
        yield `last from ${Deno.pid}`;
      },
    }),
  }, { grpc: { port, reusePort } });
  const end = link.follow(
    {
      addresses: server.addresses,
      functions: server.functions,
      ready: server.ready,
      finished: server.finished,
      get state() {
        return server.state;
      },
      shutdown: (options) => server.shutdown(options),
      reload: () => Promise.resolve(console.log("reloads")),
      status: () => server.status(),
      counters: () => ({ callsStarted: 0, callsFinished: 0, callsFailed: 0, sessions: 0, rssBytes: 0 }),
      fingerprints: () => ({}),
      [Symbol.asyncDispose]: () => server.shutdown(),
      busy: () => [...busy],
      unfit: unfit.promise,
    },
    "1.0.0",
  );
  console.log(`serving in ${Deno.pid} on ${server.addresses.grpc.port}, verdicts ${JSON.stringify(verdicts)}`);
  console.log(await end);
}

if (!Deno.env.has(SUPERVISED)) {
  Deno.exit(await supervise(["run", "-A", decodeURIComponent(new URL(import.meta.url).pathname), ...Deno.args]));
}
await serveSupervised();
Deno.exit(0);
