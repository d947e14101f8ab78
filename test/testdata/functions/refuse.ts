// Throws what `kind` says: a ModelError of that code, or something that is no error at all.
import { defineModel, type ErrorCode, ModelError } from "tensorlet";

const CODES: readonly string[] = [
  "invalid_argument",
  "not_found",
  "already_exists",
  "permission_denied",
  "resource_exhausted",
  "failed_precondition",
  "aborted",
  "out_of_range",
  "unimplemented",
  "unavailable",
  "data_loss",
  "unauthenticated",
  "internal",
];

function refuse(kind: string): never {
  if (CODES.includes(kind)) throw new ModelError(kind as ErrorCode, `Cannot go on: "${kind}" was asked for`);
  switch (kind) {
    case "long":
      throw new ModelError("invalid_argument", "x".repeat(200_000));
    case "lines":
      throw new ModelError("invalid_argument", "two\r\nlines: \u{1f600} \ud800 100%");
    case "null":
      throw null;
    case "undefined":
      throw undefined;
    case "string":
      throw "secret detail";
    case "hostile": // reading any property of it throws again
      throw new Proxy({}, {
        get() {
          throw new Error("secret detail");
        },
      });
    default:
      throw new TypeError(`secret detail at ${import.meta.url}`);
  }
}

export default defineModel({
  params: { kind: { type: "string", default: "" } },
  predict: (_inputs, ctx) => refuse(ctx.params.kind),
  async *stream(_inputs, ctx) {
    yield "before";
    refuse(ctx.params.kind);
  },
  async *chat(message) {
    yield "before";
    refuse(message.content);
  },
});
