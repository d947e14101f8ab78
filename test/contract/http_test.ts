// What HTTP asks of a server whatever its routes are: statuses, limits, cancels, slow clients, shutdown.
import { type AdapterHost, defineModel, type HttpRoute, ModelError, type ServeOptions } from "tensorlet";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "tensorlet/assert";
import { recordLog } from "../harness/calls.ts";
import { type Served, serveModels } from "../harness/grpc_client.ts";

const model = defineModel({ predict: () => Float32Array.of(1), output: { dtype: "float32", shape: [1] } });

type Handle = HttpRoute["handle"];

/** Serves `POST /echo`, `GET /fail/:code`, and what a test adds. */
function serveRoutes(
  more: Readonly<Record<string, Handle>> = {},
  { http, ...options }: ServeOptions = {},
): Promise<Served> {
  const routes: HttpRoute[] = [
    { method: "POST", path: "/echo", handle: async (_, { readBody }) => new Response(await readBody() as BodyInit) },
    {
      method: "GET",
      path: "/fail/:code",
      handle(_, { params }) {
        if (params["code"] === "bug") throw new TypeError("secret");
        throw new ModelError(params["code"] as "internal", "a text", { details: { retryAfterMs: 1500 } });
      },
      errorBody: ({ message, code }, status) => ({ error: { message, code, status } }),
    },
    ...Object.entries(more).map(([path, handle]) => ({ method: "GET", path, handle }) as const),
  ];
  return serveModels({ model }, {
    ...options,
    http: { port: 0, ...http },
    adapters: [(_: AdapterHost) => ({ http: routes })],
  });
}

function urlOf({ server }: Served, path: string): string {
  return `http://127.0.0.1:${server.addresses.http!.port}${path}`;
}

async function post(served: Served, body: BodyInit, headers: HeadersInit = {}): Promise<Response> {
  return await fetch(urlOf(served, "/echo"), { method: "POST", body, headers });
}

async function gzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(
    await new Response(new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer(),
  );
}

/** A connection on which a test writes what it likes. */
async function raw(served: Served, text: string): Promise<Deno.TcpConn> {
  const conn = await Deno.connect({ hostname: "127.0.0.1", port: served.server.addresses.http!.port });
  await conn.write(new TextEncoder().encode(text));
  return conn;
}

// What was not read when the connection ends may have it reset.
async function readAll(conn: Deno.TcpConn): Promise<string> {
  let text = "";
  try {
    for await (const chunk of conn.readable) text += new TextDecoder().decode(chunk);
  } catch (error) {
    if (!(error instanceof Deno.errors.ConnectionReset)) throw error;
  }
  return text;
}

Deno.test("http: a body comes whole, compressed or not", async () => {
  await using served = await serveRoutes();
  const bytes = crypto.getRandomValues(new Uint8Array(50_000));
  for (const [body, headers] of [[bytes, {}], [await gzip(bytes), { "content-encoding": "gzip" }]] as const) {
    const response = await post(served, body, headers);
    assertEquals(new Uint8Array(await response.arrayBuffer()), bytes);
  }
});

Deno.test("http: a body is bounded before and after decompression", async () => {
  await using served = await serveRoutes({}, { limits: { maxMessageBytes: 1000 } });
  const exact = await post(served, new Uint8Array(1000));
  assertEquals([exact.status, (await exact.arrayBuffer()).byteLength], [200, 1000]);
  const large = await post(served, new Uint8Array(1001));
  assertEquals(large.status, 413);
  assertStringIncludes((await large.json()).error, "it takes 1001 bytes, the limit is 1000");
  const bomb = await gzip(new Uint8Array(1_000_000));
  const packed = await post(served, bomb.subarray(0, 999), { "content-encoding": "gzip" });
  assertEquals(packed.status, 413);
  assertStringIncludes((await packed.json()).error, "more than 1000 bytes");
});

Deno.test("http: a body that is not what its encoding says is refused", async () => {
  await using served = await serveRoutes();
  const broken = await post(served, "no gzip", { "content-encoding": "gzip" });
  assertEquals([broken.status, (await broken.json()).error], [
    400,
    "Cannot read the body: it is not what its Content-Encoding says",
  ]);
  const unknown = await post(served, "x", { "content-encoding": "brotli" });
  assertEquals(unknown.status, 415);
  assertStringIncludes((await unknown.json()).error, `is "brotli", wanted gzip`);
});

Deno.test("http: a failure has its status, and a bug's text stays here", async () => {
  await using served = await serveRoutes();
  for (const [code, status] of [["not_found", 404], ["resource_exhausted", 429], ["unavailable", 503]] as const) {
    const response = await fetch(urlOf(served, `/fail/${code}`));
    assertEquals([response.status, response.headers.get("retry-after")], [status, "2"]);
    assertEquals(await response.json(), { error: { message: "a text", code, status } });
  }
  const response = await fetch(urlOf(served, "/fail/bug"));
  assertEquals(response.status, 500);
  assert(!(await response.text()).includes("secret"));
});

Deno.test("http: an unknown path lists what exists, a wrong method what is wanted", async () => {
  await using served = await serveRoutes();
  const unknown = await fetch(urlOf(served, "/nothing"));
  const { error, routes } = await unknown.json();
  assertEquals([unknown.status, error], [404, `Cannot find "/nothing": there is no such path`]);
  assert(routes.includes("POST /echo"), `${routes}`);
  const wrong = await fetch(urlOf(served, "/echo"));
  assertEquals([wrong.status, wrong.headers.get("allow")], [405, "POST"]);
  assertStringIncludes((await wrong.json()).error, "wanted POST");
  const inItsForm = await fetch(urlOf(served, "/fail/x"), { method: "POST" });
  assertEquals((await inItsForm.json()).error, {
    message: 'Cannot POST "/fail/x": wanted GET',
    code: "unimplemented",
    status: 405,
  });
});

Deno.test("http: a request has an id, the caller's where it has one", async () => {
  await using served = await serveRoutes();
  const own = await post(served, "x", { "x-request-id": "mine" });
  const made = await post(served, "x");
  await own.body?.cancel();
  await made.body?.cancel();
  assertEquals(own.headers.get("x-request-id"), "mine");
  assertEquals(made.headers.get("x-request-id")?.length, 36);
});

Deno.test("http: only pages of allowed origins may call", async () => {
  await using closed = await serveRoutes();
  await using open = await serveRoutes({}, { http: { corsOrigins: ["https://example.com"] } });
  for (
    const [served, origin, status] of [
      [closed, "https://example.com", 403],
      [open, "https://example.com", 200],
      [open, "https://example.org", 403],
      [closed, urlOf(closed, ""), 200],
    ] as const
  ) {
    const response = await post(served, "x", { origin });
    await response.body?.cancel();
    assertEquals(response.status, status);
  }
  const preflight = await fetch(urlOf(open, "/echo"), {
    method: "OPTIONS",
    headers: { origin: "https://example.com", "access-control-request-method": "POST" },
  });
  assertEquals(preflight.headers.get("access-control-allow-origin"), "https://example.com");
});

Deno.test("http: a name that somebody else can give this machine is no name of a server that only it hears", async () => {
  const statusOf = async (served: Served, host: string) => {
    using conn = await raw(served, `GET /fail/internal HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    return Number((await readAll(conn)).split(" ")[1]);
  };
  const options = { http: { corsOrigins: ["https://models.example.com"] } };
  await using local = await serveRoutes();
  for (const host of ["127.0.0.1:8080", "[::1]:1", "localhost:1", "a.localhost", "models"]) {
    assertEquals([host, await statusOf(local, host)], [host, 500]);
  }
  for (const host of ["example.com:8080", "127.0.0.1.example.com", "MODELS.example.com"]) {
    assertEquals([host, await statusOf(local, host)], [host, 421]);
  }
  await using behindProxy = await serveRoutes({}, options);
  assertEquals(await statusOf(behindProxy, "MODELS.example.com"), 500);
  await using open = await serveRoutes({}, { http: { hostname: "0.0.0.0" } });
  assertEquals(await statusOf(open, "example.com"), 500);
});

Deno.test("http: a body that no route reads does not hold up the connection's next request", async () => {
  await using served = await serveRoutes({}, { limits: { maxMessageBytes: 1_000_000 } });
  const body = new Uint8Array(900_000);
  const head = (path: string, close = "") =>
    new TextEncoder().encode(`POST ${path} HTTP/1.1\r\nHost: x\r\n${close}Content-Length: ${body.length}\r\n\r\n`);
  const conn = await raw(served, "");
  const answers = readAll(conn);
  const writer = conn.writable.getWriter();
  for (
    const bytes of [head("/nothing"), body, head("/fail/internal"), body, head("/echo", "Connection: close\r\n"), body]
  ) {
    await writer.write(bytes);
  }
  assertEquals((await answers).match(/HTTP\/1.1 \d+/g), ["HTTP/1.1 404", "HTTP/1.1 405", "HTTP/1.1 200"]);
});

Deno.test("http: a refused body that goes on ends its connection", async () => {
  await using served = await serveRoutes({}, { limits: { maxMessageBytes: 100_000 } });
  using conn = await raw(served, "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000000\r\n\r\n");
  await assertRejects(async () => {
    for (;;) await conn.write(new Uint8Array(65_536));
  });
});

Deno.test("http: a client that leaves aborts its request, and ends the stream that it read", async () => {
  const aborted = Promise.withResolvers<unknown>();
  const cancelled = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  await using served = await serveRoutes({
    "/wait": (_, { signal }) =>
      new Promise<Response>((_resolve, reject) => {
        begun.resolve();
        signal.addEventListener("abort", () => (aborted.resolve(signal.reason), reject(signal.reason)), { once: true });
      }),
    "/stream": () =>
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
          cancel: () => cancelled.resolve(),
        }, { highWaterMark: 0 }),
      ),
  });
  (await raw(served, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n").then(async (conn) => (await begun.promise, conn)))
    .close();
  assertEquals((await aborted.promise as ModelError).code, "cancelled");
  const conn = await raw(served, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  await conn.read(new Uint8Array(1000));
  conn.close();
  await cancelled.promise;
});

Deno.test("http: a stream waits for a client that takes nothing", async () => {
  let pulled = 0;
  const begun = Promise.withResolvers<void>();
  await using served = await serveRoutes({
    "/stream": () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            pulled++;
            begun.resolve();
            controller.enqueue(new Uint8Array(65_536));
          },
        }, { highWaterMark: 0 }),
      ),
  });
  const conn = await raw(served, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  await begun.promise;
  for (let last = -1; last !== pulled; await new Promise((resolve) => setTimeout(resolve, 50))) last = pulled;
  assert(pulled < 500, `${pulled * 64} KiB were taken`);
  conn.close();
});

for (
  const [what, text] of [
    ["headers", "POST /echo HTTP/1.1\r\nHost"],
    ["a body", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"],
  ] as const
) {
  Deno.test(`http: ${what} that do not come are waited for no longer than the bound`, async () => {
    await using served = await serveRoutes({}, { limits: { unaryTimeoutMs: 100 } });
    assertStringIncludes(await readAll(await raw(served, text)), "408");
  });
}

Deno.test("http: what is no HTTP is refused, and the server lives", async () => {
  await using served = await serveRoutes();
  for (
    const text of [
      "garbage\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      "GET /echo HTTP/1.1\r\nno colon\r\n\r\n",
      "\0\0\0\0\r\n\r\n",
    ]
  ) {
    assertStringIncludes(await readAll(await raw(served, text)), "400");
  }
  const many = `GET /echo HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(100_000)}\r\n\r\n`;
  assertStringIncludes(await readAll(await raw(served, many)), "431");
  assertEquals(await (await post(served, "lives")).text(), "lives");
});

Deno.test("http: a shutdown finishes the requests in progress, and ends those that go on", async () => {
  const gate = Promise.withResolvers<void>();
  const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const reason = Promise.withResolvers<unknown>();
  const served = await serveRoutes({
    "/slow": async () => {
      begun[0].resolve();
      await gate.promise;
      return new Response("slow");
    },
    "/ever": (_, { signal }) =>
      new Promise((_resolve, reject) => {
        begun[1].resolve();
        signal.addEventListener("abort", () => (reason.resolve(signal.reason), reject(signal.reason)), { once: true });
      }),
  });
  const slow = fetch(urlOf(served, "/slow"));
  const ever = fetch(urlOf(served, "/ever"));
  await Promise.all(begun.map(({ promise }) => promise));
  const stopped = served.server.shutdown({ graceMs: 60_000 });
  gate.resolve();
  assertEquals(await (await slow).text(), "slow");
  served.server.shutdown(); // no longer waits
  const response = await ever;
  assertEquals(response.status, 503);
  await response.body?.cancel();
  assertEquals((await reason.promise as ModelError).code, "unavailable");
  await stopped;
  await served[Symbol.asyncDispose]();
});

Deno.test("http: a route knows how its request came", async () => {
  await using served = await serveRoutes({ "/origin/:name": (_, { origin }) => Response.json(origin) });
  const { transport, method, peer } = await (await fetch(urlOf(served, "/origin/a"))).json();
  assertEquals([transport, method], ["http", "GET /origin/:name"]);
  assertStringIncludes(peer, "127.0.0.1:");
});

Deno.test("http: an access log has a line for a request that fails before it calls a function", async () => {
  const { log, records } = recordLog();
  await using served = await serveRoutes({}, { accessLog: true, log });
  await (await fetch(urlOf(served, "/fail/not_found"), { headers: { "x-request-id": "r-1" } })).body?.cancel();
  const lines = records.filter(({ message }) => message === "call");
  assertEquals(lines.map(({ level, fields: { requestId, code, method } }) => [level, requestId, code, method]), [
    ["info", "r-1", "not_found", "GET /fail/:code"],
  ]);
});
