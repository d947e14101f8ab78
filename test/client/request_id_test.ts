// How a call that failed is found in the server's log.
import { ClientError, createClient } from "tensorlet/client";
import { defineModel } from "tensorlet";
import { assertEquals, assertRejects, assertStringIncludes } from "tensorlet/assert";
import { serveModels } from "../harness/grpc_client.ts";

const boom = defineModel({
  predict: () => Promise.reject(new Error("secret")),
  // deno-lint-ignore require-yield
  async *stream() {
    throw new Error("secret");
  },
});

Deno.test("client: a failure has the request id that the server has", async () => {
  await using served = await serveModels({ boom });
  await using client = createClient(served.address, { model: "boom" });
  const fails = async (call: () => Promise<unknown>) =>
    await assertRejects(call, ClientError, "(request id ") as unknown as ClientError;
  const named = await fails(() => client.predict([], { requestId: "mine" }));
  assertEquals(named.requestId, "mine");
  // Such a call is sent without an id.
  const unnamed = await fails(() => Array.fromAsync(client.stream([], { resume: false })));
  assertStringIncludes(unnamed.message, `(request id ${unnamed.requestId})`);
});
