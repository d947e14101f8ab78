import { Metadata, status } from "@grpc/grpc-js";
import { ModelError } from "tensorlet";
import { assert, assertEquals } from "tensorlet/assert";
import { fit, statusOf } from "../../runtime/transports/grpc/status.ts";

Deno.test("statusOf() keeps the code where text and details are too large for the trailers", () => {
  const error = new ModelError("not_found", "é".repeat(100_000), { details: { blob: "x".repeat(100_000) } });
  const { code, details, metadata } = statusOf(error, new Metadata());
  assertEquals(code, status.NOT_FOUND);
  assert(encodeURI(details).length <= 2100);
  assertEquals(metadata.get("grpc-status-details-bin"), []);
});

Deno.test("statusOf() survives what a plain JavaScript function may throw", () => {
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const error = new ModelError("aborted", "lone \ud800 surrogate", {
    details: { cycle, big: 1n, retryAfterMs: 1999.7 },
  });
  Object.assign(error, { code: "no_such_code" });
  const { code, details } = statusOf(error, new Metadata());
  assertEquals([code, details], [status.UNKNOWN, "lone \ufffd surrogate"]);
});

Deno.test("fit() cuts at a character, not within one", () => {
  assertEquals(fit("short"), "short");
  assert(fit("😀".repeat(1000)).isWellFormed());
});
