// Clients that take nothing, or never finish what they send: they cost a place only until their deadline.
import { Buffer } from "node:buffer";
import http2 from "node:http2";
import { defineModel } from "tensorlet";
import { assert, assertEquals } from "tensorlet/assert";
import { answer, serveModels } from "../harness/grpc_client.ts";
import { encodeRequest } from "../harness/http2_client.ts";
import { patchHttp2Close } from "../../runtime/transports/grpc/http2_patch.ts";

const big = defineModel({ predict: () => ({ dtype: "float32", shape: [250_000], data: new Float32Array(250_000) }) });
const small = defineModel({ predict: () => ({ dtype: "float32", shape: [1], data: Float32Array.of(7) }) });

/** A connection whose client never opens more than its first window. */
function connectStalled(
  address: string,
  initialWindowSize = 0,
): { readonly session: http2.ClientHttp2Session; close(): Promise<void> } {
  patchHttp2Close();
  const session = http2.connect(`http://${address}`, { settings: { initialWindowSize } });
  const closed = new Promise<void>((resolve) => session.on("close", resolve));
  session.on("error", () => {});
  return { session, close: () => (session.destroy(), closed) };
}

function post(
  session: http2.ClientHttp2Session,
  extra: Readonly<Record<string, string>>,
  method = "Predict",
): http2.ClientHttp2Stream {
  const stream = session.request({
    ":method": "POST",
    ":path": `/inference.v1.ModelInference/${method}`,
    "content-type": "application/grpc",
    te: "trailers",
    ...extra,
  });
  stream.on("error", () => {});
  return stream;
}

Deno.test("grpc: an answer that nobody takes keeps its place until its deadline, and no longer", async () => {
  await using served = await serveModels({ big, small }, { limits: { maxInFlight: 1, maxQueue: 4 } });
  const stalled = connectStalled(served.address);
  const stream = post(stalled.session, { "grpc-timeout": "300m" });
  const headers = new Promise((resolve) => stream.on("response", resolve));
  stream.end(Buffer.from(encodeRequest("big")));
  await headers; // the answer is there, and cannot leave
  const next = await answer<{ output_tensor: number[] }>((done) => served.v1.Predict({ model_id: "small" }, done));
  assertEquals(next.output_tensor, [7]);
  await stalled.close();
});

Deno.test("grpc: a connection that is gone frees the places of its calls", async () => {
  await using served = await serveModels({ big, small }, { limits: { maxInFlight: 1, maxQueue: 4 } });
  const stalled = connectStalled(served.address);
  const stream = post(stalled.session, {}); // no deadline but the server's, a minute away
  const headers = new Promise((resolve) => stream.on("response", resolve));
  stream.end(Buffer.from(encodeRequest("big")));
  await headers;
  const next = answer<{ output_tensor: number[] }>((done) => served.v1.Predict({ model_id: "small" }, done));
  await stalled.close();
  assertEquals((await next).output_tensor, [7]);
});

Deno.test("grpc: a unary call that never half-closes ends at the server's own deadline", async () => {
  await using served = await serveModels({ small }, { limits: { unaryTimeoutMs: 200 } });
  const stalled = connectStalled(served.address);
  const stream = post(stalled.session, {});
  const response = new Promise<Readonly<Record<string, unknown>>>((resolve) => stream.on("response", resolve));
  stream.write(Buffer.from(encodeRequest("small")));
  assertEquals((await response)["grpc-status"], "4");
  await stalled.close();
});

Deno.test("grpc: a stream of small tokens waits for its reader after some hundred of them, long before 64 KiB", async () => {
  const state = { tokens: 0 };
  const ended = Promise.withResolvers<void>();
  const drip = defineModel({
    async *stream() {
      try {
        for (;;) {
          yield "x";
          state.tokens++;
        }
      } finally {
        ended.resolve();
      }
    },
  });
  await using served = await serveModels({ drip });
  const stalled = connectStalled(served.address, 100);
  post(stalled.session, {}, "StreamPredict").end(Buffer.from(encodeRequest("drip")));
  let before = -1;
  for (let still = 0; still < 50;) {
    still = state.tokens === before && before > 0 ? still + 1 : 0;
    before = state.tokens;
    assert(before < 5000, `${before} tokens wait for a client that takes none`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert(state.tokens < 300, `${state.tokens} tokens`);
  await stalled.close();
  await ended.promise;
});
