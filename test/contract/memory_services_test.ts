// grpc.health.v1.Health and grpc.reflection, bytes in and out.
import { defineModel } from "tensorlet";
import { assert, assertEquals } from "tensorlet/assert";
import { createTestServer } from "tensorlet/testing";
import { settled } from "../harness/clock.ts";
import { call } from "../harness/messages.ts";

const SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3;
const echo = defineModel({ predict: (inputs) => inputs });
const sick = defineModel({ load: () => Promise.reject(new Error("no weights")), predict: () => [] });

Deno.test("Check knows the server, its services and its functions", async () => {
  await using server = await createTestServer({ echo });
  for (const service of ["", "echo", "inference.InferenceService", "inference.v1.ModelInference"]) {
    const { code, replies } = await call(server, "check", [{ service }]);
    assertEquals([code, replies[0].status], ["ok", SERVING], service);
  }
  const { code, message } = await call(server, "check", [{ service: "nothing" }]);
  assertEquals([code, message], ["not_found", 'There is no service and no function "nothing"']);
});

Deno.test("Check and List say when a function cannot be loaded", async () => {
  await using server = await createTestServer({ echo, sick });
  assertEquals((await call(server, "check", [{ service: "sick" }])).replies[0].status, NOT_SERVING);
  const { statuses } = (await call(server, "list", [{}])).replies[0];
  const status = (name: string) => statuses[name].status;
  assertEquals(["", "echo", "sick", "inference.v1.ModelInference"].map(status), [
    NOT_SERVING, // a warm function is not ready
    SERVING,
    NOT_SERVING,
    NOT_SERVING,
  ]);
});

Deno.test("Watch gives the status at once, tells of the shutdown, and ends with it", async () => {
  const server = await createTestServer({ echo });
  const watching = call(server, "watch", [{ service: "echo" }]);
  const unknown = call(server, "watch", [{ service: "nothing" }]);
  await settled();
  await server[Symbol.asyncDispose]();
  const { code, replies } = await watching;
  assertEquals([code, replies.map(({ status }) => status)], ["unavailable", [SERVING, NOT_SERVING]]);
  assertEquals((await unknown).replies.map(({ status }) => status), [SERVICE_UNKNOWN]);
});

Deno.test("Watch ends when its client leaves", async () => {
  await using server = await createTestServer({ echo });
  const controller = new AbortController();
  const watching = call(server, "watch", [{}], { signal: controller.signal });
  await settled();
  controller.abort();
  assertEquals((await watching).code, "cancelled");
});

Deno.test("ServerReflectionInfo lists the services and gives their files", async () => {
  await using server = await createTestServer({ echo });
  const { code, replies } = await call(server, "reflect", [
    { list_services: "" },
    { file_containing_symbol: "inference.v1.ModelInference" },
    { file_containing_symbol: "inference.v1.PredictRequest.ParamsEntry" },
    { file_containing_symbol: "inference.Nothing" },
    { file_by_filename: "inference.proto" },
    {},
  ]);
  assertEquals(code, "ok");
  const [list, service, entry, nothing, file, empty] = replies;
  assertEquals(list.list_services_response.service.map(({ name }: { name: string }) => name), [
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
    "inference.GRPCInferenceService",
    "inference.InferenceService",
    "inference.v1.ModelInference",
  ]);
  for (const reply of [service, entry, file]) {
    const [bytes] = reply.file_descriptor_response.file_descriptor_proto;
    assert(bytes.length > 100);
  }
  assertEquals([nothing.error_response.error_code, empty.error_response.error_code], [5, 3]);
  assertEquals(service.original_request.file_containing_symbol, "inference.v1.ModelInference");
});
