// The store in Redis, against a real server. Run by test/e2e/sessions.sh, since it needs Debian's redis-server.
import { assertEquals, assertRejects } from "tensorlet/assert";
import { RedisSessionStore } from "../../runtime/stores/redis.ts";
import { NEVER } from "../harness/calls.ts";
import { type RedisServer, startRedis } from "../harness/redis_server.ts";
import { put, recordOf, type StoreScene, testDurableStore, until } from "../harness/store_contract.ts";

interface RedisScene extends StoreScene {
  readonly redis: RedisServer;
  open(options?: { readonly leaseMs?: number }): RedisSessionStore;
}

async function createScene(): Promise<RedisScene> {
  const redis = await startRedis();
  const stores: RedisSessionStore[] = [];
  return {
    redis,
    open(options) {
      const store = new RedisSessionStore(redis.url, options);
      stores.push(store);
      return store;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(stores.map((store) => store.close()));
      await redis.kill();
    },
  };
}

testDurableStore("RedisSessionStore", createScene);

/** Whether the store answers. */
const answers = (store: RedisSessionStore) => store.count().then(() => true, () => false);

Deno.test("RedisSessionStore fails at once while its server is away, says why, and finds it again", async () => {
  await using scene = await createScene();
  const store = scene.open();
  await put(store, "a", recordOf(1));
  await scene.redis.kill();
  // Until its connection has noticed, calls fail as that one breaks.
  await until(() => store.count().then(() => false, (error) => error.message.includes("ECONNREFUSED")));
  await assertRejects(() => store.load("a"), Error, "ECONNREFUSED");
  await assertRejects(() => store.lock("a", NEVER), Error, "ECONNREFUSED");
  await scene.redis.start();
  await until(() => answers(store));
  await put(store, "a", recordOf(2));
  assertEquals(await store.load("a"), recordOf(2));
});

Deno.test("RedisSessionStore can be opened before its server is there", async () => {
  await using scene = await createScene();
  await scene.redis.kill();
  const store = scene.open();
  await assertRejects(() => store.count(), Error, "ECONNREFUSED");
  await scene.redis.start();
  await until(() => answers(store));
});

Deno.test("RedisSessionStore does not wait for ever for a server that hangs", async () => {
  await using scene = await createScene();
  const store = scene.open();
  await put(store, "a", recordOf(1));
  scene.redis.pause();
  await assertRejects(() => store.load("a"), Error, "did not answer");
  scene.redis.resume();
  await until(() => answers(store));
  assertEquals(await store.load("a"), recordOf(1));
});

Deno.test("RedisSessionStore keeps a lease by renewing it, and loses it where it cannot", async () => {
  await using scene = await createScene();
  const [here, there] = [scene.open({ leaseMs: 300 }), scene.open({ leaseMs: 300 })];
  const lease = await here.lock("a", NEVER);
  const waiting = there.lock("a", NEVER);
  const isFirst = await Promise.race([
    waiting.then(() => false),
    new Promise((resolve) => setTimeout(resolve, 1000, true)),
  ]);
  assertEquals([isFirst, lease.lost.aborted], [true, false]); // three of its times
  await scene.redis.kill();
  await assertRejects(() => waiting, Error);
  if (!lease.lost.aborted) {
    await new Promise((resolve) => lease.lost.addEventListener("abort", resolve, { once: true }));
  }
  assertEquals(lease.lost.reason.code, "aborted");
  lease.release();
  await scene.redis.start(); // the client waits before it connects again: that must not be in the next test
  await until(async () => await answers(here) && await answers(there));
});

Deno.test("RedisSessionStore leaves nothing behind of leases and of those who waited", async () => {
  await using scene = await createScene();
  const [here, there] = [scene.open(), scene.open()];
  const lease = await here.lock("a", NEVER);
  const controller = new AbortController();
  const waiting = there.lock("a", controller.signal).catch(() => {});
  controller.abort();
  await waiting;
  lease.release();
  await here.close();
  await there.close();
  const { createClient } = await import("@redis/client");
  const client = createClient({ url: scene.redis.url });
  await client.connect();
  assertEquals(await client.keys("*"), []);
  client.destroy();
});
