import { assertEquals } from "tensorlet/assert";
import { assertFails, NEVER } from "../../test/harness/calls.ts";
import { FakeClock, settled } from "../../test/harness/clock.ts";
import { LeaseLock, type LeaseTable } from "./lease_lock.ts";
import { type Holder, isHeldBy, isNext, type Waiter } from "./lease_state.ts";

const LEASE = 9_000;

// A store that several servers ask; it may be away.
class Table implements LeaseTable {
  readonly holders = new Map<string, Holder>();
  readonly lines = new Map<string, Waiter[]>();
  isAway = false;
  renewals = 0;

  async acquire(key: string, token: string, leaseMs: number, waitMs: number): Promise<boolean> {
    await this.#answer();
    const now = Date.now();
    const line = this.lines.get(key) ?? [];
    const others = line.filter((each) => each.token !== token);
    if (isNext(this.holders.get(key), line, token, now)) {
      this.holders.set(key, { token, until: now + leaseMs });
      this.lines.set(key, others);
      return true;
    }
    const since = line.find((each) => each.token === token)?.since ?? now;
    this.lines.set(key, [...others, { token, since, until: now + waitMs }]);
    return false;
  }

  async renew(key: string, token: string, leaseMs: number): Promise<boolean> {
    this.renewals++;
    await this.#answer();
    if (!isHeldBy(this.holders.get(key), token, Date.now())) return false;
    this.holders.set(key, { token, until: Date.now() + leaseMs });
    return true;
  }

  async release(key: string, token: string): Promise<void> {
    await this.#answer();
    if (this.holders.get(key)?.token === token) this.holders.delete(key);
    this.lines.set(key, (this.lines.get(key) ?? []).filter((each) => each.token !== token));
  }

  async #answer(): Promise<void> {
    await Promise.resolve();
    if (this.isAway) throw new Error("gone");
  }
}

function servers(count: number) {
  const table = new Table();
  return { table, locks: Array.from({ length: count }, () => new LeaseLock(table, LEASE)) };
}

/** Whether a promise has resolved or rejected. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  promise.then(() => done = true, () => done = true);
  await settled();
  return done;
}

Deno.test("LeaseLock renews a lease for as long as it is held", async () => {
  using clock = new FakeClock();
  const { table, locks: [here, there] } = servers(2);
  const lease = await here!.lock("a", NEVER);
  const waiting = there!.lock("a", NEVER);
  await clock.advance(10 * LEASE);
  assertEquals([await isDone(waiting), lease.lost.aborted, table.renewals], [false, false, 30]);
  lease.release();
  lease.release();
  await clock.advance(100);
  (await waiting).release();
  await clock.advance(LEASE);
  assertEquals([table.renewals, clock.armed, table.holders.size, table.lines.get("a")], [30, 0, 0, []]);
});

Deno.test("LeaseLock gives the lease of a server that died to another when it has run out", async () => {
  using clock = new FakeClock();
  const { table, locks: [here] } = servers(1);
  await table.acquire("a", "of the dead", LEASE, 1000);
  await table.acquire("a", "dead too, and waited", LEASE, 1000);
  const waiting = here!.lock("a", NEVER);
  await clock.advance(LEASE - 100);
  assertEquals(await isDone(waiting), false);
  await clock.advance(200);
  assertEquals(await isDone(waiting), true);
  (await waiting).release();
  await here!.close();
});

Deno.test("LeaseLock says that a lease is lost when the store has given it to another", async () => {
  using clock = new FakeClock();
  const { table, locks: [here] } = servers(1);
  const lease = await here!.lock("a", NEVER);
  table.holders.set("a", { token: "other", until: Infinity });
  assertEquals(lease.lost.aborted, false);
  await clock.advance(LEASE / 3);
  assertEquals([lease.lost.aborted, lease.lost.reason.code], [true, "aborted"]);
  lease.release();
  await here!.close();
  assertEquals([table.holders.get("a")!.token, clock.armed], ["other", 0]);
});

Deno.test("LeaseLock says that a lease is lost when it may have run out while the store is away, not before", async () => {
  using clock = new FakeClock();
  const { table, locks: [here] } = servers(1);
  const lease = await here!.lock("a", NEVER);
  await clock.advance(LEASE / 3);
  table.isAway = true;
  await clock.advance(LEASE - 1);
  assertEquals(lease.lost.aborted, false);
  await clock.advance(1);
  assertEquals([lease.lost.aborted, lease.lost.reason.code], [true, "aborted"]);
  lease.release();
  await here!.close();
  assertEquals(clock.armed, 0);
});

Deno.test("LeaseLock keeps its lease through an outage that is shorter", async () => {
  using clock = new FakeClock();
  const { table, locks: [here] } = servers(1);
  const lease = await here!.lock("a", NEVER);
  table.isAway = true;
  await clock.advance(LEASE * 0.9);
  table.isAway = false;
  await clock.advance(10 * LEASE);
  assertEquals(lease.lost.aborted, false);
  lease.release();
  await here!.close();
});

Deno.test("LeaseLock fails at once where the store is away, each of those who wait too", async () => {
  using clock = new FakeClock();
  const { table, locks: [here] } = servers(1);
  const lease = await here!.lock("a", NEVER);
  const waiting = [1, 2, 3].map(() => here!.lock("a", NEVER).catch((error) => error.message));
  table.isAway = true;
  lease.release();
  assertEquals(await Promise.all(waiting), ["gone", "gone", "gone"]);
  table.isAway = false;
  const next = here!.lock("a", NEVER);
  await clock.advance(LEASE + 100); // what could not be given back runs out
  (await next).release();
  await here!.close();
  assertEquals(clock.armed, 0);
});

Deno.test("LeaseLock takes who is aborted out of the line", async () => {
  using clock = new FakeClock();
  const { table, locks: [here, there] } = servers(2);
  const lease = await here!.lock("a", NEVER);
  const controller = new AbortController();
  const aborted = there!.lock("a", controller.signal);
  await clock.advance(1000);
  assertEquals(table.lines.get("a")!.length, 1);
  controller.abort();
  await assertFails("cancelled", "", () => aborted);
  await there!.close();
  assertEquals([table.lines.get("a"), lease.lost.aborted], [[], false]);
  lease.release();
  await here!.close();
  assertEquals(clock.armed, 0);
});

Deno.test("LeaseLock lets servers take turns, however many of their own wait", async () => {
  using clock = new FakeClock();
  const { locks } = servers(2);
  const order: string[] = [];
  const turns = ["here", "here", "here", "there"].map(async (name) => {
    const lease = await locks[name === "here" ? 0 : 1]!.lock("a", NEVER);
    order.push(name);
    await settled();
    lease.release();
  });
  await clock.advance(1000);
  await Promise.all(turns);
  assertEquals(order, ["here", "there", "here", "here"]);
});
