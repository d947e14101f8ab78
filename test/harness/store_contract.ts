// What every store of sessions has to do, as tests that run against each.
import type { SessionRecord, SessionStore } from "../../runtime/middleware/session_store.ts";
import { assertEquals } from "../assert.ts";
import { assertFails, NEVER } from "./calls.ts";

/** Opens stores on the same sessions, which nobody else has and which are empty. */
export interface StoreScene extends AsyncDisposable {
  /** Another one each time, as in another process; a store in memory is always the same. */
  open(): SessionStore;
}

const LONG = 3_600_000;

/** A session after some turns. */
export function recordOf(turn: number, options: { readonly state?: unknown; readonly servedBy?: string } = {}) {
  const { state = turn, servedBy = "me" } = options;
  const history = [{ role: "user", content: "ü" }, { role: "assistant", content: "re", interrupted: true }] as const;
  return { snapshot: { id: "s", turn, history, state }, version: "1", servedBy } satisfies SessionRecord;
}

/** Saves under a lease of its own. */
export async function put(store: SessionStore, key: string, record: SessionRecord, ttlMs = LONG): Promise<void> {
  const lease = await store.lock(key, NEVER);
  try {
    await store.save(key, record, ttlMs, lease);
  } finally {
    lease.release();
  }
}

/** Asks again until it is so: for what a store does by itself, some time later. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!await isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Defines the tests. */
export function testStore(name: string, createScene: () => Promise<StoreScene>): void {
  const test = (what: string, body: (store: SessionStore, scene: StoreScene) => Promise<void>) =>
    Deno.test(`${name} ${what}`, async () => {
      await using scene = await createScene();
      await body(scene.open(), scene);
    });

  test("keeps, replaces and forgets sessions", async (store) => {
    assertEquals([await store.load("a"), await store.count()], [undefined, 0]);
    await put(store, "a", recordOf(1));
    await put(store, "a", recordOf(2));
    await put(store, "b", recordOf(3));
    assertEquals([await store.load("a"), await store.load("b")], [recordOf(2), recordOf(3)]);
    assertEquals(await store.count(), 2);
    const lease = await store.lock("a", NEVER);
    await store.delete("a", lease);
    await store.delete("a", lease);
    lease.release();
    assertEquals([await store.load("a"), await store.load("b"), await store.count()], [undefined, recordOf(3), 1]);
  });

  test("takes any key for data", async (store) => {
    const keys = [
      "",
      "__proto__",
      "constructor",
      "m\0",
      "m\0a",
      "m\0*",
      "m\0a:b{c}",
      "m\0\u{1F600}",
      `m\0${"x".repeat(256)}`,
    ];
    for (const [turn, key] of keys.entries()) await put(store, key, recordOf(turn));
    assertEquals(await Promise.all(keys.map((key) => store.load(key))), keys.map((_, turn) => recordOf(turn)));
    assertEquals([await store.load("toString"), await store.load("m"), await store.count()], [
      undefined,
      undefined,
      keys.length,
    ]);
  });

  test("keeps what a structured clone keeps", async (store) => {
    const state = {
      map: new Map<unknown, unknown>([["a", 1], [2n, new Set(["x"])]]),
      floats: Float32Array.of(1.5, -0, NaN),
      integers: BigInt64Array.of(2n ** 63n - 1n),
      big: 2n ** 200n,
      date: new Date(0),
      none: undefined,
      nothing: null,
      text: "\u{1F600}\0",
    };
    await put(store, "a", recordOf(1, { state }));
    assertEquals((await store.load("a"))?.snapshot.state, state);
    await put(store, "a", { ...recordOf(2), snapshot: { id: "s", turn: 2, history: [], state: undefined } });
    assertEquals((await store.load("a"))?.snapshot, { id: "s", turn: 2, history: [], state: undefined });
  });

  test("keeps large sessions, and small ones after them", async (store) => {
    const state = Uint8Array.from({ length: 600_000 }, (_, i) => i * 31 >> 3);
    await put(store, "a", recordOf(1, { state }));
    assertEquals((await store.load("a"))?.snapshot.state, state);
    assertEquals(await store.touch("a", "you", LONG), true);
    assertEquals((await store.load("a"))?.snapshot.state, state);
    await put(store, "a", recordOf(2));
    assertEquals(await store.load("a"), recordOf(2));
  });

  test("knows who served a session last", async (store) => {
    await put(store, "a", recordOf(1));
    assertEquals([await store.touch("a", "you", LONG), await store.touch("b", "you", LONG)], [true, false]);
    assertEquals([await store.load("a"), await store.load("b")], [recordOf(1, { servedBy: "you" }), undefined]);
    assertEquals(await store.count(), 1);
  });

  test("lets one in at a time, first come first served", async (_store, scene) => {
    const stores = [scene.open(), scene.open()];
    const order: number[] = [];
    let inside = 0;
    const first = await stores[0]!.lock("a", NEVER);
    const turns = [0, 1, 2, 3, 4, 5].map(async (i) => {
      const lease = await stores[i % 2]!.lock("a", NEVER);
      order.push(i);
      assertEquals(++inside, 1);
      await new Promise((resolve) => setTimeout(resolve));
      inside--;
      lease.release();
    });
    (await stores[1]!.lock("b", NEVER)).release(); // each key for itself
    first.release();
    await Promise.all(turns);
    // Of two stores it is each one's own callers that come in order.
    assertEquals(order.filter((i) => i % 2 === 0), [0, 2, 4]);
    assertEquals(order.filter((i) => i % 2 === 1), [1, 3, 5]);
  });

  test("lets go who is aborted while it waits", async (_store, scene) => {
    const [here, there] = [scene.open(), scene.open()];
    const first = await here.lock("a", NEVER);
    const controller = new AbortController();
    const aborted = [here.lock("a", controller.signal), there.lock("a", controller.signal)];
    const last = there.lock("a", NEVER);
    controller.abort();
    for (const each of aborted) await assertFails("cancelled", "", () => each);
    await assertFails("cancelled", "", () => here.lock("a", AbortSignal.abort()));
    first.release();
    (await last).release();
    (await here.lock("a", NEVER)).release();
  });

  test("loses no turn of two stores that are at it together", async (_store, scene) => {
    const stores = [scene.open(), scene.open()];
    const turns = Array.from({ length: 40 }, async (_, i) => {
      const store = stores[i % 2]!;
      const lease = await store.lock("a", NEVER);
      try {
        const turn = (await store.load("a"))?.snapshot.turn ?? 0;
        await store.save("a", recordOf(turn + 1), LONG, lease);
        if (i % 7 === 0) await store.touch("a", "me", LONG);
      } finally {
        lease.release();
      }
    });
    await Promise.all(turns);
    assertEquals((await stores[0]!.load("a"))?.snapshot.turn, 40);
  });
}

/** Defines the tests of stores whose sessions outlive a process. */
export function testDurableStore(name: string, createScene: () => Promise<StoreScene>): void {
  testStore(name, createScene);

  const test = (what: string, body: (here: SessionStore, there: SessionStore) => Promise<void>) =>
    Deno.test(`${name} ${what}`, async () => {
      await using scene = await createScene();
      const here = scene.open();
      assertEquals(here.durable, true);
      await body(here, scene.open());
    });

  test("shares sessions, and keeps them when it is closed", async (here, there) => {
    await put(here, "a", recordOf(1));
    assertEquals([await there.load("a"), await there.count()], [recordOf(1), 1]);
    await here.close();
    await put(there, "a", recordOf(2));
    assertEquals(await there.load("a"), recordOf(2));
  });

  test("refuses what comes with a lease that is over, and changes nothing", async (here, there) => {
    await put(here, "a", recordOf(1));
    const old = await here.lock("a", NEVER);
    old.release();
    const current = await there.lock("a", NEVER);
    await assertFails("aborted", "lease", () => here.save("a", recordOf(9), LONG, old));
    await assertFails("aborted", "lease", () => here.delete("a", old));
    assertEquals(await there.load("a"), recordOf(1));
    old.release(); // does not end the lease of another
    await there.save("a", recordOf(2), LONG, current);
    current.release();
    (await here.lock("a", NEVER)).release(); // so the release is through
    await assertFails("aborted", "lease", () => there.save("a", recordOf(9), LONG, current));
    assertEquals(await here.load("a"), recordOf(2));
  });

  test("forgets sessions when their time is over, unless they are touched", async (here, there) => {
    await put(here, "short", recordOf(1), 20);
    await put(here, "touched", recordOf(2), 20);
    await put(here, "long", recordOf(3));
    // It may be late for the touch already.
    if (await there.touch("touched", "you", LONG)) {
      await until(async () => await there.count() === 2);
      assertEquals(await there.load("touched"), recordOf(2, { servedBy: "you" }));
    } else {
      await until(async () => await there.count() === 1);
    }
    assertEquals(await here.load("short"), undefined);
    assertEquals([await there.touch("short", "you", LONG), await there.load("long")], [false, recordOf(3)]);
  });

  test("takes a new session in the place of one that has expired", async (here, there) => {
    await put(here, "a", recordOf(1, { state: new Uint8Array(200_000) }), 1);
    await until(async () => await there.load("a") === undefined);
    await put(there, "a", recordOf(2));
    assertEquals([await here.load("a"), await here.count()], [recordOf(2), 1]);
  });

  test("lets nobody starve of two stores that want the same session all the time", async (here, there) => {
    const turns = { here: 0, there: 0 };
    const greedy = async (name: keyof typeof turns, store: SessionStore) => {
      while (Math.min(turns.here, turns.there) < 10) {
        const lease = await store.lock("a", NEVER);
        turns[name]++;
        lease.release();
      }
    };
    await Promise.all([greedy("here", here), greedy("here", here), greedy("there", there)]);
  });
}
