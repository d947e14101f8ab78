// One gRPC call over bare HTTP/2, to see what is really on the wire.
import { Buffer } from "node:buffer";
import http2 from "node:http2";
import { patchHttp2Close } from "../../runtime/transports/grpc/http2_patch.ts";

/** What came back. */
export interface RawAnswer {
  readonly body: Uint8Array;
  readonly trailers: Readonly<Record<string, unknown>>;
}

/** A framed `PredictRequest` that only names a model (127 bytes at most). */
export function encodeRequest(model: string): Uint8Array {
  const name = new TextEncoder().encode(model);
  return new Uint8Array([0, 0, 0, 0, name.length + 2, 0x0a, name.length, ...name]);
}

/** Posts a framed message and reads to the end. */
export async function callRaw(address: string, path: string, message: Uint8Array): Promise<RawAnswer> {
  patchHttp2Close();
  const session = http2.connect(`http://${address}`);
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
  });
  const chunks: Uint8Array[] = [];
  let trailers: Readonly<Record<string, unknown>> = {};
  stream.on("data", (chunk: Uint8Array) => chunks.push(chunk));
  stream.on("trailers", (received) => trailers = received);
  const ended = new Promise<void>((resolve, reject) => stream.on("end", resolve).on("error", reject));
  stream.end(Buffer.from(message));
  await ended;
  const closed = new Promise<void>((resolve) => session.on("close", resolve));
  session.close();
  await closed;
  return { body: Buffer.concat(chunks), trailers };
}
