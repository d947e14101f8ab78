// Peers that are gone, or as good as gone: they are found, and cost nothing that grows.
import http2 from "node:http2";
import { type AnyModel, defineModel } from "tensorlet";
import { assert, assertEquals } from "tensorlet/assert";
import { patchHttp2Close } from "../../runtime/transports/grpc/http2_patch.ts";
import { serveModels } from "../harness/grpc_client.ts";
import { encodeRequest } from "../harness/http2_client.ts";
import { callAndSayNoMore } from "../harness/raw_connection.ts";

const STREAM = "/inference.v1.ModelInference/StreamPredict";
// So short that the tests need not wait; nothing depends on how short.
const SHORT = { keepaliveMs: 20, keepaliveTimeoutMs: 20 };
const FOR_EVER = { keepaliveMs: Infinity };

function watched(tokens: () => AsyncIterable<string>): {
  readonly model: AnyModel;
  readonly state: { hasStarted: boolean; tokens: number };
  readonly aborted: Promise<void>;
} {
  const state = { hasStarted: false, tokens: 0 };
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  const model = defineModel({
    async *stream(_inputs, ctx) {
      state.hasStarted = true;
      ctx.signal.addEventListener("abort", () => resolve(), { once: true });
      if (ctx.signal.aborted) resolve();
      for await (const token of tokens()) {
        ctx.signal.throwIfAborted();
        state.tokens++;
        yield token;
      }
      await new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
    },
  });
  return { model, state, aborted };
}

async function* nothing(): AsyncGenerator<string> {}

async function* endless(): AsyncGenerator<string> {
  for (;;) yield "x".repeat(100);
}

/** Reads until `isEnough`; what it fails with, if it does. */
async function read(conn: Deno.TcpConn, isEnough: () => boolean): Promise<unknown> {
  const buffer = new Uint8Array(65_536);
  try {
    while (!isEnough() && await conn.read(buffer) !== null);
  } catch (error) {
    return error;
  }
}

for (const [what, tokens] of [["is sent nothing", nothing], ["is sent more than it takes", endless]] as const) {
  Deno.test(`grpc: a client that answers no ping while it ${what} is reset, and its handler aborted`, async () => {
    const { model, state, aborted } = watched(tokens);
    await using served = await serveModels({ model }, { grpc: SHORT });
    for (;;) {
      using conn = await callAndSayNoMore(served.address, STREAM, encodeRequest("model"));
      let error = await read(conn, () => state.hasStarted);
      if (!state.hasStarted) continue; // found out before its call had come so far: on a busy machine
      await aborted;
      error ??= await read(conn, () => false);
      // Not an orderly end, which the kernel would go on sending what waits before.
      assert(error instanceof Deno.errors.ConnectionReset, `${error}`);
      return;
    }
  });
}

Deno.test("grpc: a client that answers pings stays connected, however quiet its call", async () => {
  const { model, state, aborted } = watched(nothing);
  await using served = await serveModels({ model }, { grpc: { ...SHORT, keepaliveTimeoutMs: 60_000 } });
  patchHttp2Close();
  const session = http2.connect(`http://${served.address}`);
  session.on("error", () => {});
  let pings = 0;
  const pingedOften = new Promise<void>((resolve) => session.on("ping", () => ++pings === 5 && resolve()));
  const stream = session.request({ ":method": "POST", ":path": STREAM, "content-type": "application/grpc" });
  stream.on("error", () => {});
  stream.end(encodeRequest("model"));
  await pingedOften;
  assertEquals([session.destroyed, stream.destroyed, state.tokens], [false, false, 0]);
  const closed = new Promise((resolve) => session.on("close", resolve));
  session.destroy();
  await Promise.all([closed, aborted]);
});

Deno.test("grpc: a connection that takes nothing stops the generator, however large the HTTP/2 windows", async () => {
  const { model, state, aborted } = watched(endless);
  await using served = await serveModels({ model }, { grpc: FOR_EVER });
  const conn = await callAndSayNoMore(served.address, STREAM, encodeRequest("model"));
  // The kernels' buffers take some megabytes; then the count no longer changes over many turns of the loop.
  let before = -1;
  for (let still = 0; still < 200;) {
    still = state.tokens === before && before > 0 ? still + 1 : 0;
    before = state.tokens;
    assert(before < 300_000, `${before} tokens of 100 characters are on their way to a client that takes none`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  conn.close();
  await aborted;
});
