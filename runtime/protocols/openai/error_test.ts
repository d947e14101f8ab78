import { assertEquals } from "tensorlet/assert";
import { type ErrorCode, ModelError } from "../../core/error.ts";
import { badField, errorBody, modelNotFound } from "./error.ts";

Deno.test("errorBody() has OpenAI's form", () => {
  assertEquals(errorBody(badField("seed", "no"), 400), {
    error: { message: "no", type: "invalid_request_error", param: "seed", code: null },
  });
  assertEquals(errorBody(modelNotFound("none"), 404).error.code, "model_not_found");
});

Deno.test("errorBody() tells the types of failures apart", () => {
  const type = (code: ErrorCode, status?: number) => errorBody(new ModelError(code, "x"), status).error.type;
  assertEquals(type("resource_exhausted", 429), "rate_limit_error");
  assertEquals(type("resource_exhausted"), "rate_limit_error");
  assertEquals(type("resource_exhausted", 413), "invalid_request_error");
  assertEquals(type("unimplemented", 405), "invalid_request_error");
  assertEquals(type("unauthenticated", 401), "authentication_error");
  assertEquals(type("permission_denied", 403), "permission_error");
  assertEquals((["internal", "unavailable", "deadline_exceeded", "unimplemented"] as const).map((code) => type(code)), [
    "server_error",
    "server_error",
    "server_error",
    "server_error",
  ]);
});

Deno.test("errorBody() takes only texts for param and code", () => {
  const details = { param: 5, code: { a: 1 } };
  const { error } = errorBody(new ModelError("invalid_argument", "\ud83d", { details }));
  assertEquals([error.param, error.code, error.message], [null, null, "\ufffd"]);
});
