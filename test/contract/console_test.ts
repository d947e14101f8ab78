// The console's files as a browser gets them, and who may call its API.
import { defineModel } from "tensorlet";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "tensorlet/assert";
import { createTestServer, type TestServer } from "tensorlet/testing";

const STATIC = new URL("../../runtime/protocols/console/static/", import.meta.url);
const ORIGIN = "http://localhost:8080";

const models = { echo: defineModel({ input: { dtype: "float32" }, predict: (x) => x }) };

async function withServer(
  action: (get: (path: string, headers?: HeadersInit) => Promise<Response>, server: TestServer) => Promise<void>,
) {
  await using server = await createTestServer(models);
  await action((path, headers = {}) => server.fetch(new Request(`${ORIGIN}${path}`, { headers })), server);
}

async function filesOf(folder: URL, prefix = ""): Promise<string[]> {
  const names: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) names.push(...await filesOf(new URL(`${name}/`, folder), `${prefix}${name}/`));
    else if (!name.endsWith(".ts")) names.push(prefix + name);
  }
  return names;
}

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript",
  css: "text/css",
  html: "text/html",
  txt: "text/plain",
};

Deno.test("console: every file of its folder is served, as what it is", () =>
  withServer(async (get) => {
    const files = await filesOf(STATIC);
    assert(files.length > 30);
    for (const file of files) {
      const response = await get(`/console/static/${file}`);
      assertEquals([file, response.status], [file, 200]);
      assertStringIncludes(response.headers.get("content-type")!, TYPES[file.split(".").pop()!]!);
      assertEquals(response.headers.get("x-content-type-options"), "nosniff");
      assertEquals(await response.text(), await Deno.readTextFile(new URL(file, STATIC)));
    }
    assertStringIncludes(await (await get("/console/protos/inference.proto")).text(), "package inference;");
  }));

Deno.test("console: nothing else is served", () =>
  withServer(async (get) => {
    for (
      const file of [
        "../files.ts",
        "..%2Ffiles.ts",
        "constructor",
        "__proto__",
        "tensor_text_test.ts",
        "vendor%2F..%2Fapp.js",
      ]
    ) {
      assertEquals([file, (await get(`/console/static/${file}`)).status], [file, 404]);
    }
  }));

Deno.test("console: the page has no script or style of its own, and its policy allows none", () =>
  withServer(async (get) => {
    const page = await get("/");
    const policy = page.headers.get("content-security-policy")!;
    assertMatch(policy, /default-src 'none'.*script-src 'self';.*frame-ancestors 'none'/);
    assert(!/unsafe|https?:|\*/.test(policy), policy);
    const text = await page.text();
    assert(!/<style|style=|<script(?![^>]* src=)|\son\w+=/i.test(text), text);
    for (const [, url] of text.matchAll(/(?:src|href)="([^"]+)"/g)) assertMatch(url!, /^(\/console\/static\/|data:,$)/);
  }));

Deno.test("console: a browser that has a file gets no second copy", () =>
  withServer(async (get) => {
    const { headers } = await get("/console/static/app.js");
    const again = await get("/console/static/app.js", { "if-none-match": headers.get("etag")! });
    assertEquals([again.status, await again.text()], [304, ""]);
  }));

Deno.test("console: a page of another origin can neither read nor call", () =>
  withServer(async (get, server) => {
    const origin = "https://evil.example";
    for (const path of ["/console/api/functions", "/console/api/events"]) {
      assertEquals((await get(path, { origin })).status, 403);
    }
    const call = (headers: HeadersInit) => {
      const body = JSON.stringify({ inputs: { "0": { dtype: "float32", shape: [1], data: [1] } } });
      return server.fetch(
        new Request(`${ORIGIN}/console/api/functions/echo/predict`, { method: "POST", headers, body }),
      );
    };
    assertEquals((await call({ origin, host: "localhost:8080" })).status, 403);
    // What a form can send without asking beforehand is refused too.
    assertEquals((await call({ origin: "null", "content-type": "text/plain", host: "localhost:8080" })).status, 403);
    const own = await call({ origin: ORIGIN, host: "localhost:8080", "content-type": "application/json" });
    assertEquals([own.status, (await own.json()).outputs["0"].data], [200, [1]]);
  }));

Deno.test("console: what it cannot read is a 400 that says why", () =>
  withServer(async (_get, server) => {
    for (
      const [body, problem] of [
        ["{", "Cannot read the body as JSON"],
        ["[]", "wanted an object"],
        ['{"inputs": {"0": {"dtype": "float33"}}}', "float33"],
        ['{"inputs": {"0": {"dtype": "float32", "shape": [2], "data": [1]}}}', "do not fill shape"],
        ['{"params": {"a": []}}', "wanted a number, a text or a boolean"],
      ] as const
    ) {
      const headers = { "content-type": "application/json" };
      const url = `${ORIGIN}/console/api/functions/echo/predict`;
      const response = await server.fetch(new Request(url, { method: "POST", headers, body }));
      assertEquals(response.status, 400);
      assertStringIncludes((await response.json()).error, problem);
    }
  }));
