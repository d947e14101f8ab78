// Requests to routes: what HTTP asks of every one of them. No socket.
import { Hono } from "hono";
import { compress } from "hono/compress";
import { cors } from "hono/cors";
import type { CallOrigin } from "../../core/call.ts";
import { ModelError, quote, toModelError } from "../../core/error.ts";
import { type Logger, msSince } from "../../core/log.ts";
import type { HttpRoute } from "../../protocols/adapter.ts";
import { HttpError } from "../../protocols/http.ts";
import { requestIdOf } from "../run_method.ts";
import { readBody } from "./body.ts";
import { type OriginOptions, refusalOf } from "./origin.ts";
import { errorResponse } from "./status.ts";

/** The options of {@linkcode createApp}. */
export interface AppOptions extends OriginOptions {
  /** The largest body, in bytes. */
  readonly maxMessageBytes: number;
  /** Aborts when the shutdown begins. */
  readonly draining: AbortSignal;
  readonly log: Logger;
}

/** What is known of a request beside itself. */
export interface Arrival {
  /** The client's address, `host:port`. */
  readonly peer?: string | undefined;
  /** Of the span that the call is to continue; in place of the request's own. */
  readonly traceparent?: string | undefined;
}

/** Answers a request; `signal` aborts when its client leaves, and at the end of a shutdown. Never rejects. */
export type App = (request: Request, signal: AbortSignal, arrival?: Arrival) => Promise<Response>;

const REQUEST_ID = "x-request-id";

/** Puts the routes behind one function. */
export function createApp(routes: readonly HttpRoute[], options: AppOptions): App {
  const app = new Hono<{ Bindings: { readonly signal: AbortSignal; readonly arrival: Arrival } }>();
  const { corsOrigins } = options;
  if (corsOrigins.length > 0) {
    app.use(cors({ origin: corsOrigins.includes("*") ? "*" : [...corsOrigins], exposeHeaders: [REQUEST_ID] }));
  }
  app.use(compress());
  for (const route of routes) {
    app.on(route.method, route.path, (c) => answer(route, c.req.raw, c.req.param(), c.env, options));
  }
  for (const [path, same] of Map.groupBy(routes, (route) => route.path)) {
    const allow = same.map(({ method }) => method).join(", ");
    app.all(path, ({ req }) => methodNotAllowed(req.method, req.path, allow, same[0]!));
  }
  app.notFound(({ req }) => notFound(req.path, routes));
  app.onError((thrown) => {
    options.log.error("Cannot answer a request", { cause: thrown });
    return errorResponse(new ModelError("internal", "The server failed"));
  });
  return async (request, signal, arrival = {}) => {
    const refusal = refusalOf(request, options);
    return refusal ? errorResponse(refusal) : await app.fetch(request, { signal, arrival });
  };
}

async function answer(
  route: HttpRoute,
  request: Request,
  params: Readonly<Record<string, string>>,
  { signal, arrival }: { readonly signal: AbortSignal; readonly arrival: Arrival },
  { maxMessageBytes, draining, log }: AppOptions,
): Promise<Response> {
  const { headers } = request;
  const id = requestIdOf(headers, REQUEST_ID);
  const method = `${route.method} ${route.path}`;
  const origin: CallOrigin = { transport: "http", method, peer: arrival.peer };
  const start = performance.now();
  const response = await respond();
  setHeader(response, REQUEST_ID, id);
  log.debug("http", {
    method: request.method,
    path: route.path,
    requestId: id,
    status: response.status,
    ms: msSince(start),
  });
  return response;

  async function respond(): Promise<Response> {
    try {
      return await route.handle(request, {
        id,
        params,
        signal,
        draining,
        deadline: undefined,
        metadata: continued(headers, arrival.traceparent),
        maxMessageBytes,
        origin,
        readBody: () => readBody(request, maxMessageBytes, signal),
      });
    } catch (thrown) {
      const error = toModelError(thrown, id);
      route.onFailure?.(error, { id, origin });
      // What functions throw has been logged, and is a ModelError by now; this failed around them.
      if (error !== thrown) log.error("Cannot answer a request", { path: route.path, requestId: id, cause: thrown });
      return errorResponse(error, route);
    }
  }
}

function continued(headers: Headers, traceparent: string | undefined): Headers {
  if (traceparent === undefined) return headers;
  const metadata = new Headers(headers);
  metadata.set("traceparent", traceparent);
  return metadata;
}

function setHeader(response: Response, name: string, value: string): void {
  try {
    response.headers.set(name, value);
  } catch {
    // Headers of a response that was made elsewhere may not change.
  }
}

// The methods of a path, where a request has another one; in the form of its routes.
function methodNotAllowed(method: string, path: string, allow: string, route: HttpRoute): Response {
  const response = errorResponse(
    new HttpError(405, "unimplemented", `Cannot ${method} ${quote(path, 200)}: wanted ${allow}`),
    route,
  );
  response.headers.set("allow", allow);
  return response;
}

function notFound(path: string, routes: readonly HttpRoute[]): Response {
  return Response.json({
    error: `Cannot find ${quote(path, 200)}: there is no such path`,
    routes: routes.map((route) => `${route.method} ${route.path}`),
  }, { status: 404 });
}
