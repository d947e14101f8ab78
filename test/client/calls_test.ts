// Deadlines, aborts, retries and errors, over sockets.
import { ClientError, createClient } from "tensorlet/client";
import { defineModel, ModelError, tensor } from "tensorlet";
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "tensorlet/assert";
import { startProxy } from "../harness/cutting_proxy.ts";
import { serveModels } from "../harness/grpc_client.ts";

const RETRY = { initialDelayMs: 60, maxDelayMs: 500 };
const X = tensor("float32", [1, 2]);

const echo = defineModel({ predict: ([x]) => x! });

/** Answers when it is aborted, and tells that it began. */
function hanging() {
  const began = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const wait = async (signal: AbortSignal) => {
    began.resolve();
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    ended.resolve();
    throw signal.reason;
  };
  const model = defineModel({
    predict: (_x, ctx) => wait(ctx.signal),
    async *stream(_x, ctx) {
      yield "first";
      await wait(ctx.signal);
    },
    async *chat(_message, ctx) {
      yield "first";
      await wait(ctx.signal);
    },
  });
  return { model, began: began.promise, ended: ended.promise };
}

async function failure(promise: Promise<unknown>): Promise<ClientError> {
  return await assertRejects(() => promise, ClientError);
}

Deno.test("client: a function's error has its code, text, details and request id", async () => {
  const refusing = defineModel({
    predict() {
      throw new ModelError("failed_precondition", "not yet", { details: { step: 3, retryAfterMs: 1500 } });
    },
  });
  await using served = await serveModels({ refusing });
  await using client = createClient(served.address, { model: "refusing" });
  const error = await failure(client.predict(X, { requestId: "r-1" }));
  assertEquals(
    [error.code, error.message, error.details, error.retryAfterMs, error.requestId],
    ["failed_precondition", "not yet", { step: "3" }, 1500, "r-1"],
  );
});

Deno.test("client: a name that nobody serves is said with those that are near", async () => {
  await using served = await serveModels({ echo });
  await using client = createClient(served.address, { model: "ecko" });
  const error = await failure(client.predict(X));
  assertEquals(error.code, "not_found");
  assertStringIncludes(error.message, "echo");
});

Deno.test("client: a deadline ends predict, and so does a signal; the server hears of it", async () => {
  const { model, began, ended } = hanging();
  await using served = await serveModels({ model });
  await using client = createClient(served.address, { model: "model" });
  assertEquals((await failure(client.predict(X, { timeoutMs: 50 }))).code, "deadline_exceeded");

  const reason = new Error("enough");
  const controller = new AbortController();
  const predicted = failure(client.predict(X, { signal: controller.signal }));
  await began;
  controller.abort(reason);
  const error = await predicted;
  assertEquals([error.code, error.cause], ["cancelled", reason]);
  await ended;
  assertEquals((await failure(client.predict(X, { signal: AbortSignal.abort() }))).code, "cancelled");
  assertEquals((await failure(client.predict(X, { signal: AbortSignal.timeout(20) }))).code, "deadline_exceeded");
});

Deno.test("client: leaving a stream's loop ends the function, a signal too", async () => {
  for (const how of ["break", "abort"]) {
    const { model, ended } = hanging();
    await using served = await serveModels({ model });
    await using client = createClient(served.address, { model: "model" });
    const controller = new AbortController();
    const read = async () => {
      for await (const token of client.stream([], { resume: false, signal: controller.signal })) {
        assertEquals(token, "first");
        if (how === "break") break;
        controller.abort();
      }
    };
    if (how === "break") await read();
    else assertEquals((await failure(read())).code, "cancelled");
    await ended;
  }
});

Deno.test("client: closing it ends what is in progress", async () => {
  const { model, began } = hanging();
  await using served = await serveModels({ model });
  const client = createClient(served.address, { model: "model" });
  const predicted = failure(client.predict(X));
  await began;
  client.close();
  assertEquals((await predicted).message, "The client was closed");
  assertEquals((await failure(client.predict(X))).code, "failed_precondition");
});

Deno.test("client: predict is tried again after a broken connection, a bounded number of times", async () => {
  let runs = 0;
  const counting = defineModel({
    predict([x]) {
      runs++;
      return x!;
    },
  });
  await using served = await serveModels({ counting });
  {
    await using proxy = startProxy({ target: served.address, cut: (n) => n < 2 ? { afterBytes: 64 } : {} });
    await using client = createClient(proxy.address, { model: "counting", retry: RETRY });
    assertEquals((await client.predict(X)).output, X);
    assertEquals(proxy.connections, 3);
  }
  await using proxy = startProxy({ target: served.address, cut: () => ({ afterBytes: 64 }) });
  await using client = createClient(proxy.address, { model: "counting", retry: { ...RETRY, retries: 1 } });
  const error = await failure(client.predict(X));
  assertEquals(
    [error.code === "unavailable" || error.code === "internal", proxy.connections],
    [true, 2],
    error.message,
  );
  assert(runs >= 1);
});

Deno.test("client: a server without room says when to come again", async () => {
  let runs = 0;
  const busy = defineModel({
    predict([x]) {
      if (++runs < 3) throw new ModelError("resource_exhausted", "full", { details: { retryAfterMs: 30 } });
      return x!;
    },
  });
  const full = defineModel({
    predict() {
      runs++;
      throw new ModelError("resource_exhausted", "too large");
    },
  });
  await using served = await serveModels({ busy, full });
  await using client = createClient(served.address, { model: "busy", retry: { initialDelayMs: 1 } });
  assertEquals((await client.predict(X)).output, X);
  assertEquals(runs, 3);
  await using other = createClient(served.address, { model: "full", retry: { initialDelayMs: 1 } });
  assertEquals([(await failure(other.predict(X))).message, runs], ["too large", 4]);
});

Deno.test("client: a server that comes back on its port is found again", async () => {
  const first = await serveModels({ echo });
  const { port } = first.server.addresses.grpc;
  await using client = createClient(first.address, { model: "echo", retry: { ...RETRY, retries: 8 } });
  await client.predict(X);
  await first[Symbol.asyncDispose]();
  const predicted = client.predict(X);
  await using _second = await serveModels({ echo }, { grpc: { port } });
  assertEquals((await predicted).output, X);
});

Deno.test("client: a slow reader slows the function, and gets every token", async () => {
  const state = { made: 0 };
  const fast = defineModel({
    async *stream() {
      for (; state.made < 20_000; state.made++) yield "x".repeat(1000);
    },
  });
  await using served = await serveModels({ fast });
  await using client = createClient(served.address, { model: "fast" });
  let read = 0;
  let ahead = 0;
  for await (const _token of client.stream([])) {
    if (++read > 100) break;
    await new Promise((resolve) => setTimeout(resolve, 2));
    ahead = Math.max(ahead, state.made - read);
  }
  assert(ahead < 2_000, `the function was ${ahead} tokens ahead`);
});

Deno.test("client: what cannot be meant is said before anything is sent", async () => {
  await using client = createClient("127.0.0.1:1", { model: "echo" });
  assertThrows(
    () => createClient("127.0.0.1:1", { model: "echo", retry: { retries: -1 } }),
    RangeError,
    "retry.retries",
  );
  await assertRejects(() => client.predict(X, { timeoutMs: NaN }), RangeError, "timeoutMs is NaN");
  await assertRejects(() => client.predict(X, { requestId: "ü" }), RangeError, "requestId");
  const error = await failure(client.predict(X, { params: { name: "ü" } }));
  assertEquals(error.message, 'Cannot send param "name": it goes as metadata, so name and value have to be ASCII');
  const stream = client.stream([], { signal: AbortSignal.abort() });
  assertEquals((await failure(Array.fromAsync(stream))).code, "cancelled");
  assertEquals((await failure(Array.fromAsync(stream))).message, "Cannot read a stream of tokens twice");
});
