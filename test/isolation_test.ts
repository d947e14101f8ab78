// Runs test/isolation: tests that start real workers. `deno test` checks the types of each worker's modules anew, which
// takes seconds a worker; without that the same tests take seconds altogether. Their types are checked with all others.
import { assertEquals } from "tensorlet/assert";

Deno.test("functions in workers and processes of their own", async () => {
  const folder = new URL("isolation/", import.meta.url);
  const files = (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => new URL(name, folder).pathname);
  const { code } = await new Deno.Command(Deno.execPath(), {
    args: ["test", "-A", "--no-check", ...files.sort()],
    stdin: "null",
  }).spawn().status;
  assertEquals(code, 0);
});
