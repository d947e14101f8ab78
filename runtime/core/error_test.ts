import { assert, assertEquals, assertFalse, assertStrictEquals } from "tensorlet/assert";
import { ModelError as CopyOfModelError } from "./error.ts?copy";
import { ModelError, quote, toModelError } from "./error.ts";

Deno.test("ModelError carries its code, details and cause", () => {
  const cause = new Error("secret");
  const error = new ModelError("not_found", "There is none", { details: { retryAfterMs: 5 }, cause });
  assertEquals([error.code, error.message, error.name], ["not_found", "There is none", "ModelError"]);
  assertEquals(error.details, { retryAfterMs: 5 });
  assertStrictEquals(error.cause, cause);
  assertFalse("cause" in new ModelError("internal", "x"));
});

Deno.test("ModelError recognises the errors of another copy of its module", () => {
  assert(CopyOfModelError !== ModelError);
  assert(new CopyOfModelError("internal", "x") instanceof ModelError);
});

Deno.test("ModelError is no instance of a class that extends it", () => {
  class Refusal extends ModelError {}
  const refusal = new Refusal("aborted", "x");
  assert(refusal instanceof Refusal && refusal instanceof ModelError);
  assertFalse(new ModelError("aborted", "x") instanceof Refusal);
});

Deno.test("ModelError does not recognise what only looks like one", () => {
  for (const value of [new Error("x"), { code: "internal", message: "x" }, null, undefined, "internal"]) {
    assertFalse((value as unknown) instanceof ModelError);
  }
});

Deno.test("toModelError() lets a ModelError through", () => {
  const error = new ModelError("aborted", "x");
  assertStrictEquals(toModelError(error, "id"), error);
});

Deno.test("toModelError() hides what else was thrown, whatever it is", () => {
  for (const thrown of [new TypeError("password"), "password", undefined, null, { code: "not_found" }]) {
    const error = toModelError(thrown, "id-7");
    assertEquals(error.code, "internal");
    assertEquals(error.message, "The function failed (request id id-7); the server's log has the cause");
    assertStrictEquals(error.cause, thrown);
  }
});

Deno.test("quote() escapes and cuts", () => {
  assertEquals(quote('a"b\n'), '"a\\"b\\n"');
  assertEquals(quote("x".repeat(100)), `"${"x".repeat(100)}"`);
  assertEquals(quote("x".repeat(101)), `"${"x".repeat(100)}…"`);
  assertEquals(quote("abcdef", 3), '"abc…"');
});

Deno.test("quote() gives valid Unicode when it cuts a character in two", () => {
  assert(quote("😀😀", 3).isWellFormed());
});
