// The metrics of several processes of one server.
import { assertEquals } from "tensorlet/assert";
import { type Exposition, parseExposition } from "../harness/exposition.ts";
import { connectToEach, PID, pidBehind } from "../harness/processes.ts";
import { DenoProcess, functionFolder, MAIN } from "../harness/server_process.ts";

Deno.test("processes: whichever is asked has the metrics of all, and of those that died how many", async () => {
  await using folder = await functionFolder({ pid: PID });
  await using server = new DenoProcess([
    ...[...MAIN, folder.path, "--port", "0"],
    ...["--http-port", "0", "--processes", "2", "--isolation", "inline"],
  ]);
  const [, port, httpPort] = await server.stdout.find(/grpc:\/\/127\.0\.0\.1:(\d+) and http:\/\/127\.0\.0\.1:(\d+)/);
  await server.stderr.find(/ready/);
  // A connection of its own each time: the kernel chooses who is asked.
  const scrape = async (): Promise<Exposition> => {
    using client = Deno.createHttpClient({});
    return parseExposition(await (await fetch(`http://127.0.0.1:${httpPort}/metrics`, { client })).text());
  };
  const pids = server.children();
  using connected = await connectToEach(Number(port), pids);
  const counts = ({ sum }: Exposition) =>
    ["1", "2"].map((n) => sum("tensorlet_requests_total", `model="pid"`, `code="ok"`, `process="${n}"`));
  const before = counts(await scrape());
  for (const [i, client] of connected.clients.entries()) {
    for (let calls = 0; calls <= i; calls++) assertEquals(await pidBehind(client), pids[i]);
  }
  for (let i = 0; i < 6; i++) {
    const metrics = await scrape();
    assertEquals(counts(metrics), [before[0]! + 1, before[1]! + 2]);
    assertEquals(["1", "2"].map((n) => metrics.sum("tensorlet_instances", `process="${n}"`)), [1, 1]);
    assertEquals([...metrics.of("tensorlet_processes")], [[`state="up"`, 2], [`state="silent"`, 0]]);
    assertEquals(metrics.sum("tensorlet_build_info"), 1);
  }

  Deno.kill(pids[0]!, "SIGKILL");
  await server.stderr.find(/ready process=1/);
  const after = await scrape();
  assertEquals([...after.of("tensorlet_process_restarts_total").values()].sort(), [0, 1]);
  assertEquals(counts(after), [0, before[1]! + 2]);
  assertEquals([...after.of("tensorlet_processes")], [[`state="up"`, 2], [`state="silent"`, 0]]);
  Deno.kill(server.pid, "SIGTERM");
  assertEquals((await server.status).code, 0);
});
