import { createTestServer } from "tensorlet/testing";
import { assertEquals, assertStringIncludes } from "tensorlet/assert";
import { NEVER } from "../../../test/harness/calls.ts";
import { defineModel } from "../../core/define.ts";
import type { AdapterHost } from "../adapter.ts";
import { webConsole } from "./adapter.ts";

let stopped = 0;
const models = {
  echo: defineModel({ input: { dtype: "int64" }, predict: (x) => [x] }),
  endless: defineModel({
    input: {},
    async *stream() {
      try {
        for (;;) yield "a";
      } finally {
        stopped++;
      }
    },
  }),
};

async function ask(action: (post: (path: string, name: string, body: unknown) => Promise<Response>) => Promise<void>) {
  let host!: AdapterHost;
  const capture = (of: AdapterHost) => {
    host = of;
    return {};
  };
  await using _server = await createTestServer(models, { adapters: [capture] });
  const routes = webConsole(host).http!;
  await action(async (path, name, body) => {
    const headers = { "content-type": "application/json" };
    const request = new Request("http://localhost/", { method: "POST", headers });
    const http = {
      id: "r",
      signal: NEVER,
      draining: NEVER,
      deadline: undefined,
      metadata: new Headers(),
      maxMessageBytes: 1e6,
      params: { name },
      readBody: () => Promise.resolve(new TextEncoder().encode(JSON.stringify(body))),
    };
    return await routes.find((route) => route.path.endsWith(path))!.handle(request, http);
  });
}

Deno.test("the console's predict answers tensors, exact", () =>
  ask(async (post) => {
    const sent = { dtype: "int64", shape: [1], data: [`${2n ** 53n + 1n}`] };
    const { outputs } = await (await post("/predict", "echo", { inputs: { "0": sent } })).json();
    assertEquals(outputs["0"].data, sent.data);
  }));

Deno.test("the console's stream ends the function when its reader leaves", () =>
  ask(async (post) => {
    const reader = (await post("/stream", "endless", {})).body!.getReader();
    assertStringIncludes(new TextDecoder().decode((await reader.read()).value), '{"type":"token","text":"a"}');
    await reader.cancel();
    assertEquals(stopped, 1);
  }));
