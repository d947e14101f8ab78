import { assertEquals } from "tensorlet/assert";
import { Buffer } from "node:buffer";
import { EventEmitter } from "node:events";
import type net from "node:net";
import { FakeClock } from "../../../test/harness/clock.ts";
import { Connection } from "./connection.ts";
import { FRAME, SHUTDOWN_NOTICE } from "./frames.ts";

class FakeSocket extends EventEmitter {
  readonly written: number[] = [];
  readonly writableLength = 0;
  readonly writableHighWaterMark = 65_536;

  write(bytes: Uint8Array): boolean {
    this.written.push(...bytes);
    return true;
  }

  end(): this {
    return this;
  }

  destroy(): this {
    return this;
  }
}

const frame = (type: number, streamId: number) => [0, 0, 0, type, 0, 0, 0, 0, streamId];
const SETTINGS = frame(4, 0);
const PREFACE = [...new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ...SETTINGS];
const receive = (socket: FakeSocket, bytes: readonly number[]) => void socket.emit("data", Buffer.from(bytes));

// The server's first frame is on its way; gathered writes leave with the event loop's turn.
function connect(): { readonly socket: FakeSocket; readonly connection: Connection; sent(): Promise<number[]> } {
  const socket = new FakeSocket();
  const connection = new Connection(socket as unknown as net.Socket);
  socket.write(Uint8Array.from(SETTINGS));
  receive(socket, PREFACE);
  const sent = async () => {
    await new Promise<void>((resolve) => setImmediate(resolve));
    return socket.written.slice(SETTINGS.length);
  };
  return { socket, connection, sent };
}

Deno.test("Connection tells a peer of the shutdown at once that has made a call", async () => {
  const { socket, connection, sent } = connect();
  receive(socket, frame(FRAME.headers, 1));
  await connection.announceShutdown();
  assertEquals(await sent(), [...SHUTDOWN_NOTICE]);
});

Deno.test("Connection tells a new peer of the shutdown when it has made its first call", async () => {
  using clock = new FakeClock();
  const { socket, connection, sent } = connect();
  const told = connection.announceShutdown();
  assertEquals(await sent(), []);
  receive(socket, frame(FRAME.headers, 1));
  await told;
  assertEquals(await sent(), [...SHUTDOWN_NOTICE]);
  assertEquals(clock.armed, 0);
});

Deno.test("Connection tells a new peer of the shutdown that makes no call", async () => {
  using clock = new FakeClock();
  const { connection, sent } = connect();
  const told = connection.announceShutdown();
  await clock.advance(200);
  assertEquals(await sent(), []);
  await clock.advance(50);
  await told;
  assertEquals(await sent(), [...SHUTDOWN_NOTICE]);
});

Deno.test("Connection does not wait for a peer that is gone", async () => {
  using clock = new FakeClock();
  const { connection } = connect();
  const told = connection.announceShutdown();
  connection.close();
  await told;
  assertEquals(clock.armed, 0);
});
