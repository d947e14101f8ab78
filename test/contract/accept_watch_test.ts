// A listener that takes nothing: the kernel makes its connections all the same.
import { assertEquals } from "tensorlet/assert";
import net from "node:net";
import { AcceptQueue } from "../../runtime/transports/grpc/accept_queue.ts";
import { AcceptWatch } from "../../runtime/transports/grpc/accept_watch.ts";
import { FakeClock, settled } from "../harness/clock.ts";

async function network(): Promise<void> {
  for (let i = 0; i < 20; i++) await settled();
}

function listenDeaf(): Deno.TcpListener {
  return Deno.listen({ hostname: "127.0.0.1", port: 0 }); // and nobody calls accept()
}

Deno.test("AcceptWatch finds a listener that takes no connections, again and again", async () => {
  using clock = new FakeClock();
  using listener = listenDeaf();
  let deaf = 0;
  const watch = new AcceptWatch({ hostname: "127.0.0.1", port: listener.addr.port }, () => deaf++);
  for (let times = 1; times <= 2; times++) {
    await clock.advance(10_000);
    await network();
    assertEquals(deaf, times - 1);
    await clock.advance(5_000);
    assertEquals(deaf, times);
  }
  watch.stop();
  await network();
  assertEquals(clock.armed, 0);
});

Deno.test("AcceptWatch finds a port where nobody listens", async () => {
  using clock = new FakeClock();
  const listener = listenDeaf();
  const { port } = listener.addr;
  listener.close();
  let deaf = 0;
  const watch = new AcceptWatch({ hostname: "127.0.0.1", port }, () => deaf++);
  await clock.advance(10_000);
  await network();
  assertEquals(deaf, 1);
  watch.stop();
});

Deno.test("AcceptWatch leaves a listener alone that takes its connections, and serves none of its own", async () => {
  using clock = new FakeClock();
  let taken = 0;
  let served = 0;
  let deaf = 0;
  const server = net.createServer((socket) => {
    taken++;
    watch.taken(socket, () => {
      served++;
      socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  const watch = new AcceptWatch({ hostname: "127.0.0.1", port }, () => deaf++);
  await clock.advance(9_999);
  const client = net.connect(port, "127.0.0.1");
  client.on("error", () => {});
  await network();
  assertEquals([taken, served], [1, 1]);
  await clock.advance(9_999); // it is quiet again from then on
  await network();
  assertEquals([taken, served], [1, 1]);
  await clock.advance(1);
  await network();
  assertEquals([taken, served], [2, 1]);
  await clock.advance(9_999);
  await network();
  assertEquals([taken, served, deaf], [2, 1, 0]);
  watch.stop();
  client.destroy();
  await new Promise((resolve) => server.close(resolve));
  assertEquals(clock.armed, 0);
});

/** A listener on a port that another one of this process may listen on, too. */
async function listenShared(port: number, onConnection: (socket: net.Socket) => void): Promise<net.Server> {
  const server = net.createServer(onConnection);
  await new Promise<void>((resolve) => server.listen({ host: "127.0.0.1", port, reusePort: true }, resolve));
  return server;
}

Deno.test({
  name: "AcceptWatch of a shared port looks at what waits for its own listener, and connects to nobody",
  ignore: Deno.build.os !== "linux",
  async fn() {
    using clock = new FakeClock();
    let deaf = 0;
    let taken = 0;
    using listener = listenDeaf();
    const { port } = listener.addr;
    const watch = new AcceptWatch({ hostname: "127.0.0.1", port, isShared: true }, () => deaf++);
    await clock.advance(60_000);
    await network();
    assertEquals([deaf, new AcceptQueue(port).length], [0, 0]); // nobody has come
    const client = net.connect(port, "127.0.0.1");
    await new Promise((resolve) => client.once("connect", resolve));
    assertEquals(new AcceptQueue(port).length, 1);
    await clock.advance(14_999);
    assertEquals(deaf, 0);
    await clock.advance(10_001);
    assertEquals(deaf, 1);
    watch.stop();
    client.destroy();

    const sockets: net.Socket[] = [];
    const server = await listenShared(0, (socket) => {
      sockets.push(socket);
      live.taken(socket, () => taken++);
    });
    const { port: shared } = server.address() as net.AddressInfo;
    const live = new AcceptWatch({ hostname: "127.0.0.1", port: shared, isShared: true }, () => deaf++);
    await clock.advance(60_000);
    await network();
    assertEquals([deaf, taken], [1, 0]);
    const visitor = net.connect(shared, "127.0.0.1");
    await new Promise((resolve) => visitor.once("connect", resolve));
    await network();
    await clock.advance(60_000);
    assertEquals([deaf, taken], [1, 1]);
    live.stop();
    visitor.destroy();
    sockets.forEach((socket) => socket.destroy());
    await new Promise((resolve) => server.close(resolve));
    assertEquals(clock.armed, 0);
  },
});
