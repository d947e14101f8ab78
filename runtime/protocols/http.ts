// What protocols over HTTP share: statuses that gRPC has no code for, JSON bodies, server-sent events.
import { type ErrorCode, ModelError, type ModelErrorOptions, quote } from "../core/error.ts";
import type { HttpContext } from "./adapter.ts";

/** A failure whose HTTP status its code does not tell. */
export class HttpError extends ModelError {
  /** The response's status. */
  readonly status: number;

  /** As `ModelError`, with a status. */
  constructor(status: number, code: ErrorCode, message: string, options: ModelErrorOptions = {}) {
    super(code, message, options);
    this.status = status;
  }
}

/** The body of a request as JSON. Rejects with a `ModelError` where it is none. */
export async function readJson(request: Request, http: HttpContext): Promise<unknown> {
  const type = request.headers.get("content-type");
  if (type !== null && !/^application\/([\w.-]+\+)?json\s*(;|$)/i.test(type)) {
    throw new HttpError(
      415,
      "invalid_argument",
      `Cannot read the body: its Content-Type is ${quote(type)}, wanted application/json`,
    );
  }
  return parseJson(await http.readBody());
}

/** Bytes as JSON. Throws a `ModelError` where they are none. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    const why = error instanceof SyntaxError ? error.message : "it is not UTF-8";
    throw new ModelError("invalid_argument", `Cannot read the body as JSON: ${why}`);
  }
}

/** A response that sends each text as the data of an event, as soon as the client takes it. */
export function eventStream(events: AsyncIterable<string, void, undefined>): Response {
  const encoder = new TextEncoder();
  const iterator = events[Symbol.asyncIterator]();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(`data: ${value}\n\n`));
    },
    async cancel() {
      await iterator.return?.();
    },
  }, { highWaterMark: 0 });
  return new Response(body, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" },
  });
}
