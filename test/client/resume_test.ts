// Streams through a proxy that cuts them: no token is missing, none comes twice, and the function runs once.
import { ClientError, createClient } from "tensorlet/client";
import { defineModel, ModelError } from "tensorlet";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "tensorlet/assert";
import { type Cut, startProxy } from "../harness/cutting_proxy.ts";
import { serveModels } from "../harness/grpc_client.ts";

const TOKENS = 200;
const TEXT = Array.from({ length: TOKENS }, (_, i) => `t${i} `).join("");
const RETRY = { initialDelayMs: 1, maxDelayMs: 20 };

function counted() {
  const state = { runs: 0 };
  const model = defineModel({
    async *stream(_inputs, ctx) {
      state.runs++;
      for (let i = 0; i < (ctx.maxTokens ?? TOKENS); i++) {
        yield `t${i} `;
        await new Promise((resolve) => setImmediate(resolve)); // each token a frame of its own
      }
    },
  });
  return { model, state };
}

async function readThrough(target: string, cut: (connection: number) => Cut, retry: object = RETRY) {
  await using proxy = startProxy({ target, cut });
  await using client = createClient(proxy.address, { model: "words", retry });
  const stream = client.stream([]);
  const text = (await Array.fromAsync(stream)).join("");
  return { text, stats: stream.stats, connections: proxy.connections };
}

async function inParallel(count: number, width: number, run: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(Array.from({ length: width }, async () => {
    while (next < count) await run(next++);
  }));
}

Deno.test("resume: a stream that is cut at any token is the uncut one", async () => {
  const { model, state } = counted();
  await using served = await serveModels({ words: model });
  await inParallel(TOKENS + 1, 8, async (i) => {
    const at = i + 1; // the last chunk is empty: behind it only the status is missing
    const { text, stats } = await readThrough(served.address, (n) => n === 0 ? { afterMessages: at } : {});
    assertEquals(text, TEXT, `cut after token ${at}`);
    assertEquals([stats.tokens, stats.resumptions], [TOKENS, at > TOKENS ? 0 : 1], `cut after token ${at}`);
  });
  assertEquals(state.runs, TOKENS + 1, "the function runs once for each stream");
});

Deno.test("resume: a stream that is cut at any byte of its beginning is the uncut one", async () => {
  const { model, state } = counted();
  await using served = await serveModels({ words: model });
  const before = 300;
  await inParallel(before, 8, async (at) => {
    const { text } = await readThrough(served.address, (n) => n === 0 ? { afterBytes: at } : {}, {
      initialDelayMs: 60,
    });
    assertEquals(text, TEXT, `cut after byte ${at}`);
  });
  assertEquals(state.runs, before);
});

Deno.test("resume: a connection that is cut again and again, as long as it goes on", async () => {
  const { model, state } = counted();
  await using served = await serveModels({ words: model });
  const { text, stats, connections } = await readThrough(served.address, () => ({ afterMessages: 7 }));
  assertEquals(text, TEXT);
  assertEquals([state.runs, stats.resumptions], [1, connections - 1]);
  assert(connections > TOKENS / 7);
});

Deno.test("resume: retries in a row are bounded", async () => {
  const { model } = counted();
  await using served = await serveModels({ words: model });
  const error = await assertRejects(
    () =>
      readThrough(served.address, (n) => n === 0 ? { afterMessages: 5 } : { afterBytes: 64 }, { ...RETRY, retries: 2 }),
    ClientError,
  );
  assertEquals(error.code, "unavailable");
});

Deno.test("resume: what the server keeps no more is not hidden", async () => {
  const { model } = counted();
  // Nothing is kept behind what a reader has had.
  await using served = await serveModels({ words: model }, { limits: { resumeWindowMs: 0, replayKeepMs: 0 } });
  const error = await assertRejects(
    () => readThrough(served.address, (n) => n === 0 ? { afterMessages: 5 } : {}, { ...RETRY, initialDelayMs: 50 }),
    ClientError,
  );
  assertEquals(error.code, "data_loss");
  assertStringIncludes(error.message, "Cannot resume the stream from token 5 after a broken connection: ");
});

Deno.test("resume: a refusal is not tried again, and no stream without leave to resume", async () => {
  let runs = 0;
  const picky = defineModel({
    async *stream() {
      runs++;
      yield "a";
      throw new ModelError("invalid_argument", "no more");
    },
  });
  const { model } = counted();
  await using served = await serveModels({ picky, words: model });
  await using client = createClient(served.address, { model: "picky", retry: RETRY });
  const error = await assertRejects(() => Array.fromAsync(client.stream([])), ClientError);
  assertEquals([error.code, error.message, runs], ["invalid_argument", "no more", 1]);

  await using proxy = startProxy({ target: served.address, cut: () => ({ afterMessages: 3 }) });
  await using other = createClient(proxy.address, { model: "words", retry: RETRY });
  const lost = await assertRejects(() => Array.fromAsync(other.stream([], { resume: false })), ClientError);
  assertEquals([lost.code === "unavailable" || lost.code === "internal", proxy.connections], [true, 1], lost.message);
});
