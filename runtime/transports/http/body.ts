// A request's body: whole, decompressed, and never more than the limit.
import { concatBytes } from "../../core/bytes.ts";
import { ModelError, quote } from "../../core/error.ts";
import { HttpError } from "../../protocols/http.ts";

const ENCODINGS: Readonly<Record<string, CompressionFormat>> = { gzip: "gzip", "x-gzip": "gzip", deflate: "deflate" };

/** Reads a body; rejects with a `ModelError`. */
export async function readBody(request: Request, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > maxBytes) throw tooLarge(`${declared}`, maxBytes);
  if (!request.body) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of decoded(request.body, request.headers.get("content-encoding"))) {
      length += chunk.length;
      if (length > maxBytes) throw tooLarge(`more than ${maxBytes}`, maxBytes); // leaving the loop cancels the rest
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof ModelError) throw error;
    signal.throwIfAborted();
    throw new ModelError("invalid_argument", "Cannot read the body: it is not what its Content-Encoding says", {
      cause: error,
    });
  }
  return chunks.length === 1 ? chunks[0]! : concatBytes(chunks);
}

function decoded(body: ReadableStream<Uint8Array<ArrayBuffer>>, encoding: string | null): ReadableStream<Uint8Array> {
  const name = encoding?.trim().toLowerCase() ?? "";
  if (name === "" || name === "identity") return body;
  const format = Object.hasOwn(ENCODINGS, name) ? ENCODINGS[name]! : undefined;
  if (format) return body.pipeThrough(new DecompressionStream(format));
  throw new HttpError(
    415,
    "invalid_argument",
    `Cannot read the body: its Content-Encoding is ${quote(name)}, wanted gzip, deflate or identity`,
  );
}

function tooLarge(what: string, maxBytes: number): HttpError {
  return new HttpError(
    413,
    "resource_exhausted",
    `Cannot read the body: it takes ${what} bytes, the limit is ${maxBytes} (option maxMessageBytes)`,
  );
}
