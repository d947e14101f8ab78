// A listener that closes takes what the kernel has accepted for it first.
import { assertEquals } from "tensorlet/assert";
import net from "node:net";
import { startListening, stopListening } from "../../runtime/transports/listener.ts";

// Connects while this thread stands still, then says what came on each connection.
const CLIENTS = `
  onmessage = async ({ data: { port, connected } }) => {
    const clients = await Promise.all(Array.from({ length: 10 }, () => Deno.connect({ hostname: "127.0.0.1", port })));
    Atomics.store(connected, 0, 1);
    Atomics.notify(connected, 0);
    postMessage(await Promise.all(clients.map(({ readable }) => new Response(readable).text().catch(String))));
  };
`;

Deno.test("stopListening() takes the connections that have come, where others may listen on the port", async () => {
  const server = net.createServer((socket) => socket.end("taken"));
  const { port } = await startListening(server, { host: "127.0.0.1", port: 0, reusePort: true });
  const closed = new Promise((resolve) => server.once("close", resolve));
  const worker = new Worker(`data:text/javascript,${encodeURIComponent(CLIENTS)}`, { type: "module" });
  const said = new Promise<readonly string[]>((resolve) => worker.onmessage = ({ data }) => resolve(data));
  const connected = new Int32Array(new SharedArrayBuffer(4));
  worker.postMessage({ port, connected });
  Atomics.wait(connected, 0, 0);
  await stopListening(server, true);
  assertEquals(await said, Array.from({ length: 10 }, () => "taken"));
  worker.terminate();
  await closed;
});
