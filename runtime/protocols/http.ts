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

/** How deep arrays and objects may be within each other. */
const MAX_NESTING = 100;

/** Takes the place of what was read; `context.source` is a number as it was written. */
export type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;

/** Bytes as JSON. Throws a `ModelError` where they are none, or nested more than 100 deep. */
export function parseJson(bytes: Uint8Array, reviver?: Reviver): unknown {
  checkNesting(bytes);
  try {
    // The types do not know the third argument of a reviver yet.
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes), reviver as (key: string) => unknown);
  } catch (error) {
    const why = error instanceof SyntaxError ? error.message : "it is not UTF-8";
    throw new ModelError("invalid_argument", `Cannot read the body as JSON: ${why}`);
  }
}

const QUOTE = 34, BACKSLASH = 92;

// JSON.parse() takes any depth, but what reads its result would run out of stack.
function checkNesting(bytes: Uint8Array): void {
  let depth = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte === QUOTE) {
      for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
    } else if (byte > 90) { // a brace is its bracket with one more bit
      if ((byte & 0xdf) === 91) depth++;
      else if ((byte & 0xdf) === 93) depth--;
      if (depth > MAX_NESTING) {
        throw new ModelError("invalid_argument", `Cannot read the body: it is nested more than ${MAX_NESTING} deep`);
      }
    }
  }
}

/**
 * The values, once the first has come: a failure before it is the caller's. A generator that has not begun would not
 * clean up where its reader leaves at once; this one has.
 */
export async function started<T>(
  values: AsyncGenerator<T, void, undefined>,
): Promise<AsyncIterable<T, void, undefined>> {
  let first: IteratorResult<T, void> | undefined = await values.next();
  const iterator: AsyncIterator<T, void, undefined> = {
    next() {
      const next = first ? Promise.resolve(first) : values.next();
      first = undefined;
      return next;
    },
    return: () => values.return(),
  };
  return { [Symbol.asyncIterator]: () => iterator };
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
