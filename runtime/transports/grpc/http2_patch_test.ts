import { assertEquals } from "tensorlet/assert";
import { hasGoawayFault } from "./http2_patch.ts";

Deno.test("hasGoawayFault() knows the versions that die on GOAWAY", () => {
  const versions = ["2.7.14", "2.9.0", "2.9.3", "2.9.4", "2.9.5", "2.9.6", "2.9.6+abc", "2.9.7", "2.10.0", "3.0.0"];
  assertEquals(versions.filter(hasGoawayFault), ["2.9.4", "2.9.5", "2.9.6", "2.9.6+abc"]);
});
