// Batches over sockets: their pace, their memory, and what goes wrong.
import { type BatchStats, ClientError, createClient } from "tensorlet/client";
import { defineModel, ModelError } from "tensorlet";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "tensorlet/assert";
import { startProxy } from "../harness/cutting_proxy.ts";
import { serveModels } from "../harness/grpc_client.ts";

const first = defineModel({
  input: { dtype: "float32" },
  output: { dtype: "float32", shape: [1] },
  batch: (items) => items.map(({ input }) => Float32Array.of(input.data[0]!)),
});

Deno.test("batch: 10,000 vectors, no faster than the server takes them", async () => {
  let answered = 0;
  const slow = defineModel({
    input: { dtype: "float32" },
    output: { dtype: "float32", shape: [1] },
    batching: { maxSize: 32 },
    async batch(items) {
      if (answered % 512 === 0) await new Promise((resolve) => setTimeout(resolve, 30));
      answered += items.length;
      return items.map(({ input }) => Float32Array.of(input.data[0]!));
    },
  });
  await using served = await serveModels({ slow });
  await using client = createClient(served.address, { model: "slow" });
  const count = 10_000;
  let made = 0;
  let ahead = 0;
  function* vectors() {
    for (; made < count; made++) {
      ahead = Math.max(ahead, made - answered);
      yield { id: `v${made}`, features: new Float32Array(784).fill(made) };
    }
  }
  const told: BatchStats[] = [];
  const { results, stats } = await client.batch(vectors(), { onProgress: (stats) => told.push(stats) });
  assertEquals(results.length, count);
  assert(results.every(({ id, output }, i) => id === `v${i}` && output[0] === i));
  assertEquals([stats.sent, stats.inFlight], [count, 0]);
  assert(stats.bytes > count * 784 * 4 && stats.bytes < count * (784 * 4 + 20));
  assert(stats.decreases > 0, "the server let it wait");
  assert(stats.increases > 0, "and took more again");
  assert(stats.window >= 1 && stats.window <= 1024 && stats.waitedMs <= stats.sendMs);
  assertEquals(told.at(-1), stats);
  // Server and client hold a few megabytes of them: windows, sockets, and what is in flight.
  assert(ahead * 784 * 4 < 24 * 1024 * 1024, `the sender was ${ahead} vectors ahead`);
});

Deno.test("batch: a server that takes nothing holds the sender", async () => {
  const stuck = defineModel({
    input: { dtype: "float32" },
    batching: { maxSize: 1 },
    async batch(items, ctx) {
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
      return items.map(({ input }) => input);
    },
  });
  await using served = await serveModels({ stuck });
  await using client = createClient(served.address, { model: "stuck" });
  let made = 0;
  async function* vectors() {
    for (;;) {
      made++;
      yield new Array(784).fill(1);
      if (made % 64 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
    }
  }
  const error = await assertRejects(() => client.batch(vectors(), { timeoutMs: 1500 }), ClientError);
  assertEquals(error.code, "deadline_exceeded");
  assert(made * 784 * 4 < 24 * 1024 * 1024, `${made} vectors were taken from the source`);
});

Deno.test("batch: none, a bad one, a source that fails, a signal", async () => {
  const picky = defineModel({
    input: { dtype: "float32", shape: [2] },
    output: { dtype: "float32", shape: [1] },
    predict(x) {
      if (x.data[0]! < 0) throw new ModelError("out_of_range", "negative");
      return Float32Array.of(x.data[0]! + x.data[1]!);
    },
  });
  await using served = await serveModels({ picky });
  await using client = createClient(served.address, { model: "picky" });
  const none = await client.batch([]);
  assertEquals([none.results, none.version, none.stats.sent], [[], "", 0]);

  const bad = await assertRejects(() => client.batch([[1, 2], { id: "b", features: [-1, 2] }]), ClientError);
  assertEquals([bad.code, bad.message], ["out_of_range", 'Vector "b" at position 1: negative']);

  const source = new Error("the disk is gone");
  function* failing() {
    yield [1, 2];
    throw source;
  }
  assertEquals(await assertRejects(() => client.batch(failing()), Error), source);

  const controller = new AbortController();
  async function* aborting() {
    yield [1, 2];
    controller.abort();
    yield [3, 4];
    await new Promise((resolve) => setTimeout(resolve, 0));
    yield [5, 6];
  }
  const aborted = await assertRejects(() => client.batch(aborting(), { signal: controller.signal }), ClientError);
  assertEquals(aborted.code, "cancelled");
});

Deno.test("batch: a broken connection is an error, unless all vectors may be sent again", async () => {
  await using served = await serveModels({ first });
  const vectors = Array.from({ length: 500 }, (_, i) => [i, 0]);
  await using proxy = startProxy({ target: served.address, cut: (n) => n < 2 ? { afterBytes: 120 } : {} });
  await using client = createClient(proxy.address, { model: "first", retry: { initialDelayMs: 60 } });
  await assertRejects(() => client.batch(vectors), ClientError);
  assertEquals(proxy.connections, 1);
  const { results } = await client.batch(vectors, { retry: true });
  assertEquals([results.length, proxy.connections], [500, 3]);
  const once = await assertRejects(() => client.batch(vectors.values(), { retry: true }), TypeError);
  assertStringIncludes(once.message, "can be read only once");
});

Deno.test("batch: no vector is taken before there is a connection", async () => {
  let made = 0;
  function* vectors() {
    made++;
    yield [1];
  }
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  await using client = createClient(`127.0.0.1:${port}`, {
    model: "first",
    retry: { initialDelayMs: 150, retries: 9 },
  });
  const controller = new AbortController();
  const refused = client.batch(vectors(), { signal: controller.signal });
  await using served = await serveModels({ first }, { grpc: { port } });
  assertEquals((await refused).results.map(({ output }) => output[0]), [1]);
  assertEquals([made, served.address], [1, `127.0.0.1:${port}`]);
});
