import { assertEquals, assertRejects } from "tensorlet/assert";
import { around, type Ending, type Surroundings } from "./around.ts";

async function* counted(count: number, log: string[] = []): AsyncGenerator<number, void, undefined> {
  try {
    for (let i = 0; i < count; i++) yield i;
  } finally {
    log.push("source ended");
  }
}

// Surroundings that note what happens to them.
function noted(values: () => AsyncIterable<number, void, undefined>, more: Partial<Surroundings<number>> = {}) {
  const log: string[] = [];
  const endings: Ending[] = [];
  const surrounded = around<number>({
    enter: () => void log.push("enter"),
    values: () => (log.push("values"), values()),
    onValue: (value) => log.push(`${value}`),
    leave: (ending) => {
      log.push(ending.how);
      endings.push(ending);
    },
    ...more,
  });
  return { log, endings, surrounded };
}

Deno.test("around() enters at the first value and leaves after the last, once", async () => {
  const { log, surrounded } = noted(() => counted(2));
  assertEquals(log, []);
  assertEquals(await Array.fromAsync(surrounded), [0, 1]);
  assertEquals(log, ["enter", "values", "0", "1", "completed"]);
  assertEquals(await surrounded.next(), { done: true, value: undefined });
  assertEquals(await surrounded.return!(), { done: true, value: undefined });
  assertEquals(log.length, 5);
});

Deno.test("around() leaves after its source where the reader leaves", async () => {
  const log: string[] = [];
  const surrounded = around({ values: () => counted(9, log), leave: ({ how }) => log.push(how) });
  for await (const _ of surrounded) break;
  assertEquals(log, ["source ended", "left"]);
});

Deno.test("around() runs nothing where the reader leaves before the first value", async () => {
  const { log, surrounded } = noted(() => counted(1));
  await surrounded.return!();
  assertEquals([await surrounded.next(), log], [{ done: true, value: undefined }, []]);
});

Deno.test("around() leaves with the failure of a value, or of the source itself", async () => {
  const failures = [
    () => {
      throw new RangeError("no");
    },
    async function* () {
      yield 1;
      throw new RangeError("no");
    },
  ];
  for (const values of failures) {
    const { log, endings, surrounded } = noted(values);
    const failure = await assertRejects(() => Array.fromAsync(surrounded), RangeError, "no");
    assertEquals(log.at(-1), "failed");
    assertEquals(endings, [{ how: "failed", reason: failure }]);
  }
});

Deno.test("around() hands on what becomes of a failure", async () => {
  const { endings, surrounded } = noted(() => {
    throw new RangeError("inner");
  }, { toFailure: (reason) => new TypeError("outer", { cause: reason }) });
  const failure = await assertRejects(() => surrounded.next(), TypeError, "outer");
  assertEquals(endings, [{ how: "failed", reason: failure }]);
});

Deno.test("around() runs nothing else where it cannot enter", async () => {
  for (
    const refusal of [() => Promise.reject(new RangeError("full")), () => {
      throw new RangeError("full");
    }]
  ) {
    const { log, surrounded } = noted(() => counted(1), { enter: refusal });
    await assertRejects(() => surrounded.next(), RangeError, "full");
    assertEquals([await surrounded.next(), log], [{ done: true, value: undefined }, []]);
  }
});

Deno.test("around() leaves where the reader has left while it entered", async () => {
  const entered = Promise.withResolvers<void>();
  const { log, surrounded } = noted(() => counted(1), { enter: () => entered.promise });
  const first = surrounded.next();
  await surrounded.return!();
  entered.resolve();
  assertEquals([await first, log], [{ done: true, value: undefined }, ["left"]]);
});
