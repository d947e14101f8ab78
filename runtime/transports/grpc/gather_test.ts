import { assertEquals } from "tensorlet/assert";
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
