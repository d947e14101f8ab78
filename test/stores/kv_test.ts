import { assertEquals, assertRejects, assertStringIncludes } from "tensorlet/assert";
import { KvSessionStore } from "../../runtime/stores/kv.ts";
import { assertFails } from "../harness/calls.ts";
import { put, recordOf, type StoreScene, testDurableStore } from "../harness/store_contract.ts";

interface KvScene extends StoreScene {
  readonly path: string;
}

async function createScene(): Promise<KvScene> {
  const dir = await Deno.makeTempDir();
  const path = `${dir}/sessions.db`;
  const stores: KvSessionStore[] = [];
  return {
    path,
    open() {
      const store = new KvSessionStore(path);
      stores.push(store);
      return store;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(stores.map((store) => store.close()));
      await Deno.remove(dir, { recursive: true });
    },
  };
}

testDurableStore("KvSessionStore", createScene);

Deno.test("KvSessionStore refuses a session that Deno KV cannot take, and keeps the one before it", async () => {
  await using scene = await createScene();
  const store = scene.open();
  await put(store, "a", recordOf(1));
  const state = new Uint8Array(719_000);
  await put(store, "b", recordOf(1, { state }));
  assertEquals((await store.load("b"))?.snapshot.state, state);
  const error = await assertFails("resource_exhausted", "Deno KV takes 720000 at most", () => {
    return put(store, "a", recordOf(2, { state: new Uint8Array(800_000) }));
  });
  assertStringIncludes(error.message, "it takes 800");
  assertEquals(await store.load("a"), recordOf(1));
});

Deno.test("KvSessionStore tries again to open a file that could not be opened", async () => {
  await using scene = await createScene();
  const dir = `${scene.path}.d`;
  const store = new KvSessionStore(`${dir}/sessions.db`);
  await assertRejects(() => store.load("a"), Error, "unable to open");
  await assertRejects(() => store.lock("a", new AbortController().signal), Error, "unable to open");
  await Deno.mkdir(dir);
  await put(store, "a", recordOf(1));
  assertEquals(await store.load("a"), recordOf(1));
  await store.close();
  await assertRejects(() => store.load("a"), Error, "closed");
  await store.close();
});
