// What a function in a process of its own that means harm, and others on the machine, can do: nothing to the server.
import { assert, assertEquals } from "tensorlet/assert";
import { assertFails, floats, predictCall, streamCall } from "../harness/calls.ts";
import { answers, faulty, isRunning, socketFolders, startChild } from "../harness/child.ts";

const one = predictCall({ input: floats(1) });

Deno.test("only the process that was started can connect", async () => {
  const before = socketFolders();
  const starting = startChild(faulty(""));
  let folder: string | undefined;
  while (folder === undefined) {
    await new Promise((resolve) => setTimeout(resolve));
    folder = socketFolders().find((name) => !before.includes(name));
  }
  assertEquals(Deno.statSync(`/tmp/${folder}`).mode! & 0o777, 0o700);
  // One says too little, one what is wrong, one nothing.
  const others = await Promise.all([1, 32, 0].map(async (length) => {
    const conn = await Deno.connect({ transport: "unix", path: `/tmp/${folder}/socket` });
    if (length > 0) await conn.write(new Uint8Array(length));
    return conn;
  }));
  await using child = await starting;
  assert(await answers(child));
  for (const conn of others) {
    assertEquals(await conn.read(new Uint8Array(1)).catch(() => null), null);
    conn.close();
  }
});

// They take the encoder's place.
const sends = (json: string) => `JSON.stringify = () => ${JSON.stringify(json)};`;
for (
  const code of [
    "DataView.prototype.setUint32 = () => {};",
    "const { setUint32 } = DataView.prototype; DataView.prototype.setUint32 = function (at) { setUint32.call(this, at, 2 ** 32 - 1, true); };",
    sends("null"),
    sends("{"),
    sends('{ "type": "reply", "id": 1, "reply": null }'),
    sends('{ "type": "reply", "id": 1, "reply": { "type": "tensors", "index": 0, "output": { "a": 5 } } }'),
    sends('{ "type": "reply", "id": 1, "reply": { "type": "failure", "error": { "code": "none" } } }'),
    sends('{ "type": "log", "level": "none" }'),
    sends('{ "type": "end", "id": 1, "error": 5 }'),
  ]
) {
  Deno.test(`a process that sends what is no message is ended: ${code}`, async () => {
    await using child = await startChild(faulty(code));
    await assertFails("unavailable", "sent a message that cannot be read", () => child.run(one));
    await child.instance.close(0);
    assertEquals(isRunning(child.pid), false);
  });
}

Deno.test("a process that sends more than it was asked for is ended", async () => {
  // It never counts what it has sent ahead.
  await using child = await startChild(`{
    async *stream() {
      const { push } = Array.prototype;
      Array.prototype.push = function (...values) {
        return typeof values[0] === "number" ? 0 : push.apply(this, values);
      };
      for (;;) yield "again";
    },
  }`);
  const run = child.instance.run(streamCall());
  await assertFails("unavailable", "sent a message that cannot be read", async () => {
    throw await child.instance.ended;
  });
  await assertFails(
    "unavailable",
    "sent a message that cannot be read",
    () => run.replies[Symbol.asyncIterator]().next(),
  );
});

Deno.test("a process of the function's own that holds its output open does not hold up its end", async () => {
  const code = faulty("new Deno.Command('sleep', { args: ['30'], stdin: 'null' }).spawn(); Deno.exit(3);");
  await using child = await startChild(code, { flags: ["--no-prompt", "--allow-run=sleep", "--allow-read"] });
  await assertFails("unavailable", "ended with exit code 3", () => child.run(one));
  await child.instance.close(0);
});
