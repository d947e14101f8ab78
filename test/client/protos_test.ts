import { assertEquals } from "tensorlet/assert";
import { clientProtos } from "../../.ci/client_protos.ts";

Deno.test("client: its messages are those of protos/", async () => {
  const committed = await Deno.readTextFile(new URL("../../runtime/client/protos.json", import.meta.url));
  assertEquals(JSON.parse(committed), JSON.parse(clientProtos()), "deno run -A .ci/client_protos.ts --update");
});
