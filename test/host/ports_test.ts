import { assertEquals } from "tensorlet/assert";
import { createLogger } from "../../runtime/core/log.ts";
import { httpPortOf } from "../../runtime/host/ports.ts";

const hostname = "127.0.0.1";

Deno.test("httpPortOf() leaves a default port to whoever has it, and says so", () => {
  const warnings: string[] = [];
  const log = createLogger(({ message }) => warnings.push(message));
  const of = (httpPort: number | undefined, hasChosenHttpPort: boolean) =>
    httpPortOf({ hostname, httpPort, hasChosenHttpPort }, log);
  const other = Deno.listen({ hostname, port: 0 });
  const { port } = other.addr as Deno.NetAddr;
  assertEquals([of(port, false), of(port, true)], [undefined, port]);
  assertEquals(warnings, [`no HTTP: ${hostname}:${port} is taken; --http-port chooses another port`]);
  other.close();
  assertEquals([of(port, false), of(0, false), of(undefined, true)], [port, 0, undefined]);
  assertEquals(warnings.length, 1);
});
