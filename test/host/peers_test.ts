// Processes of one server that read each other's streams: here as many lines in one process.
import { assertEquals, assertStringIncludes } from "tensorlet/assert";
import { ModelError } from "../../runtime/core/error.ts";
import type { Reply } from "../../runtime/core/call.ts";
import type { ProcessMetrics } from "../../runtime/core/metrics.ts";
import { Peers } from "../../runtime/host/peers.ts";
import { assertFails, collect, NEVER, recordLog } from "../harness/calls.ts";
import { FakeClock } from "../harness/clock.ts";

const SILENT = recordLog().log;

const METRICS: ProcessMetrics = [{ name: "a", help: "", type: "gauge", aggregator: "sum", values: [] }];

const delta = (index: number): Reply => ({ type: "delta", index, text: `t${index}` });

/** A folder with the socket of another process, which keeps the call `key`. */
async function otherProcess(
  replies: (from: number, signal: AbortSignal) => AsyncIterable<Reply, void, undefined>,
): Promise<AsyncDisposable & { readonly peers: Peers }> {
  const folder = await Deno.makeTempDir();
  const other = new Peers(folder);
  const open = (key: string, from: number, signal: AbortSignal) => key === "key" ? replies(from, signal) : undefined;
  other.listen({ open, metrics: () => METRICS }, SILENT);
  await Deno.rename(`${folder}/${Deno.pid}.sock`, `${folder}/other.sock`);
  return {
    peers: new Peers(folder),
    async [Symbol.asyncDispose]() {
      other[Symbol.dispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

Deno.test("Peers read a stream that another process keeps, from an index on, to its end", async () => {
  await using there = await otherProcess(async function* (from) {
    for (let i = from; i < 2_000; i++) yield delta(i);
  });
  const replies = await collect((await there.peers.find("key", 1_990, NEVER))!);
  assertEquals(replies, Array.from({ length: 10 }, (_, i) => delta(1_990 + i)));
  assertEquals(await there.peers.find("another key", 0, NEVER), undefined);
});

Deno.test("Peers pass tensors and failures on", async () => {
  const tensors: Reply = {
    type: "tensors",
    index: 0,
    output: { y: { dtype: "float32", shape: [2], data: Float32Array.of(1, 2) } },
  };
  await using there = await otherProcess(async function* () {
    yield tensors;
    throw new ModelError("out_of_range", "Cannot resume", { details: { first: 7 } });
  });
  const read: Reply[] = [];
  const error = await assertFails("out_of_range", "Cannot resume", async () => {
    for await (const reply of (await there.peers.find("key", 0, NEVER))!) read.push(reply);
  });
  assertEquals([read, error.details], [[tensors], { first: 7 }]);
});

Deno.test("Peers end the reading elsewhere when their own reader leaves, or is aborted", async () => {
  for (const leave of ["return", "abort"]) {
    const left = Promise.withResolvers<void>();
    const controller = new AbortController();
    await using there = await otherProcess(async function* (_from, signal) {
      yield delta(0);
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      left.resolve();
    });
    const reader = (await there.peers.find("key", 0, controller.signal))![Symbol.asyncIterator]();
    assertEquals((await reader.next()).value, delta(0));
    if (leave === "return") {
      await reader.return!();
    } else {
      const next = reader.next();
      controller.abort();
      await assertFails("cancelled", "", () => next);
    }
    await left.promise;
  }
});

Deno.test("Peers find nothing where no other process is, or one has been killed", async () => {
  const folder = await Deno.makeTempDir();
  const peers = new Peers(folder);
  assertEquals(await peers.find("key", 0, NEVER), undefined);
  await Deno.writeTextFile(`${folder}/12.sock`, ""); // nobody listens there
  assertEquals(await peers.find("key", 0, NEVER), undefined);
  await Deno.remove(folder, { recursive: true });
  assertEquals(await peers.find("key", 0, NEVER), undefined);
});

Deno.test("Peers have the metrics of the others, and know how many live that do not answer", async () => {
  await using there = await otherProcess(async function* () {});
  assertEquals(await there.peers.metrics(), { answered: [METRICS], silent: 0 });
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(`${folder}/12.sock`, ""); // of one that was killed
  const mute = Deno.listen({ transport: "unix", path: `${folder}/13.sock` });
  using clock = new FakeClock();
  const asked = new Peers(folder).metrics();
  using _connection = await mute.accept();
  await clock.advance(1_000);
  assertEquals(await asked, { answered: [], silent: 1 });
  mute.close();
  await Deno.remove(folder, { recursive: true });
});

Deno.test("Peers say that a process has died in the middle", async () => {
  const folder = await Deno.makeTempDir();
  using listener = Deno.listen({ transport: "unix", path: `${folder}/dying.sock` });
  const dying = (async () => {
    using connection = await listener.accept();
    await connection.read(new Uint8Array(1_000));
    const header = new TextEncoder().encode('{"type":"done","id":0}');
    await connection.write(new Uint8Array(new Uint32Array([header.length, 0]).buffer));
    await connection.write(header);
  })();
  const replies = await new Peers(folder).find("key", 0, NEVER);
  await dying;
  await assertFails("unavailable", "has ended", () => collect(replies!));
  await Deno.remove(folder, { recursive: true });
});

Deno.test("Peers go on without a socket", async () => {
  const { log, records } = recordLog();
  using peers = new Peers("/no/such/folder");
  peers.listen({ open: () => undefined, metrics: () => [] }, log);
  assertEquals(await peers.find("key", 0, NEVER), undefined);
  assertStringIncludes(records[0]!.message, "can only be resumed here");
});
