// The trace context of the program that calls.
import { type Context, context, createContextKey, propagation, ROOT_CONTEXT } from "@opentelemetry/api";
import { createClient } from "tensorlet/client";
import { defineModel } from "tensorlet";
import { assertEquals } from "tensorlet/assert";
import { serveModels } from "../harness/grpc_client.ts";

const TRACEPARENT = createContextKey("traceparent");

/** Has a context with a `TRACEPARENT` be the active one of `action`, and written down, as an SDK would. */
async function withActive(traceparent: string, action: () => Promise<void>): Promise<void> {
  const active = ROOT_CONTEXT.setValue(TRACEPARENT, traceparent);
  const whole = { active: () => active, with: () => {}, bind: () => {}, enable: () => {}, disable: () => {} };
  context.setGlobalContextManager(whole as unknown as Parameters<typeof context.setGlobalContextManager>[0]);
  propagation.setGlobalPropagator({
    inject(from: Context, carrier, setter) {
      setter.set(carrier, "traceparent", `${from.getValue(TRACEPARENT)}`);
    },
    extract: (from) => from,
    fields: () => ["traceparent"],
  });
  try {
    await action();
  } finally {
    context.disable();
    propagation.disable();
  }
}

const teller = defineModel({
  predict: (_input, ctx) => [{ dtype: "string", shape: [1], data: [ctx.metadata.get("traceparent") ?? "none"] }],
  async *stream(_input, ctx) {
    yield ctx.metadata.get("traceparent") ?? "none";
  },
  async *chat(_message, ctx) {
    yield ctx.metadata.get("traceparent") ?? "none";
  },
});

Deno.test("client: calls carry the active trace context, unless their metadata has another one", async () => {
  await using served = await serveModels({ teller });
  await using client = createClient(served.address, { model: "teller" });
  const told = async (metadata: Readonly<Record<string, string>> = {}) => {
    await using chat = client.chat({ metadata });
    return [
      (await client.predict([], { metadata })).outputs[0]!.data[0],
      ...await Array.fromAsync(client.stream([], { metadata })),
      ...await Array.fromAsync(chat.send("hello")),
    ];
  };
  assertEquals(await told(), ["none", "none", "none"]);
  await withActive("active", async () => {
    assertEquals(await told(), ["active", "active", "active"]);
    assertEquals(await told({ traceparent: "own" }), ["own", "own", "own"]);
  });
});
