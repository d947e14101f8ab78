import { assert, assertEquals, assertStrictEquals } from "tensorlet/assert";
import { gatherWrites } from "./gather.ts";

// A socket that takes `room` bytes before it says no.
function createSocket(room = 16_384) {
  const events: string[] = [];
  const callbacks: ((error?: Error) => void)[] = [];
  const socket = {
    events,
    callbacks,
    writableLength: 0,
    writableHighWaterMark: room,
    write(bytes: Uint8Array, ...rest: ((error?: Error) => void)[]): boolean {
      events.push(
        `write ${new TextDecoder().decode(bytes.subarray(0, 20))}${bytes.length > 20 ? ` of ${bytes.length}` : ""}`,
      );
      callbacks.push(rest.at(-1)!);
      return socket.writableLength + bytes.length < room;
    },
    end: () => (events.push("end"), socket),
    destroy: () => (events.push("destroy"), socket),
    emit: (event: string) => (events.push(event), true),
  };
  // deno-lint-ignore no-explicit-any
  gatherWrites(socket as any);
  return socket;
}

const bytes = (text: string) => new TextEncoder().encode(text);
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

Deno.test("gatherWrites() makes one write of a turn's, in order, whatever microtasks come between", async () => {
  const socket = createSocket();
  assertEquals(socket.write(bytes("a")), true);
  await Promise.resolve();
  socket.write(bytes("b"));
  socket.write("c" as never);
  assertEquals(socket.events, []);
  await turn();
  assertEquals(socket.events, ["write abc"]);
  socket.write(bytes("d"));
  await turn();
  await turn();
  assertEquals(socket.events, ["write abc", "write d"]);
});

Deno.test("gatherWrites() calls every callback, with the error that the write had", async () => {
  const socket = createSocket();
  const called: unknown[] = [];
  socket.write(bytes("a"), (error) => called.push(error));
  socket.write(bytes("b"));
  socket.write(bytes("c"), "utf8" as never, (error) => called.push(error));
  await turn();
  assertEquals(called, []);
  const error = new Error("gone");
  socket.callbacks[0]!(error);
  assertEquals(called, [error, error]);
});

Deno.test("gatherWrites() writes at once what is large, and what comes before an end", async () => {
  const socket = createSocket();
  socket.write(bytes("b"));
  socket.write(new Uint8Array(65_536));
  socket.write(bytes("c"));
  socket.end();
  socket.write(bytes("d"));
  socket.destroy();
  await turn();
  assertEquals(socket.events.map((event) => event.replaceAll("\0", "")), [
    "write b of 65537",
    "write c",
    "end",
    "write d",
    "destroy",
  ]);
});

Deno.test("gatherWrites() says no where the socket would, and tells of room where only it had said no", async () => {
  const socket = createSocket(10);
  assertEquals([socket.write(bytes("12345")), socket.write(bytes("67890"))], [true, false]);
  await turn();
  assertEquals(socket.events, ["write 1234567890"]); // the socket itself will say "drain"
  socket.writableLength = 8;
  assertEquals(socket.write(bytes("abc")), false);
  socket.writableLength = 0; // it has sent on before the turn ends
  await turn();
  assertEquals(socket.events.slice(1), ["write abc", "drain"]);
});

Deno.test("gatherWrites() uses a buffer again when its write is done, not before, and only its own part of it", async () => {
  const written: { readonly bytes: Uint8Array; readonly done: () => void }[] = [];
  const socket = {
    writableLength: 0,
    writableHighWaterMark: Infinity,
    write: (bytes: Uint8Array, done: () => void) => written.push({ bytes, done }) > 0,
    end() {},
    destroy() {},
    emit() {},
  };
  // deno-lint-ignore no-explicit-any
  gatherWrites(socket as any);
  const send = async (value: number, length: number) => {
    for (let half = 0; half < 2; half++) socket.write(new Uint8Array(length / 2).fill(value), () => {});
    await turn();
    return written.at(-1)!;
  };
  const secret = await send(1, 40_000);
  const meanwhile = await send(2, 40_000);
  assertEquals([secret.bytes[0], secret.bytes.at(-1)], [1, 1]);
  assert(secret.bytes.buffer !== meanwhile.bytes.buffer);
  secret.done();
  const next = await send(3, 10_000);
  assertStrictEquals(next.bytes.buffer, secret.bytes.buffer);
  assertEquals([next.bytes.length, next.bytes.every((byte) => byte === 3)], [10_000, true]);
});
