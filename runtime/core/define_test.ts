import { assert, assertEquals, assertStrictEquals, assertThrows } from "tensorlet/assert";
import { type AnyModel, checkName, defineModel, describeModel, isModel, resolveModel } from "./define.ts";

type Options = Parameters<typeof defineModel>[0];
const predict = () => [];
const chat = async function* () {};
// Definitions that the types refuse: a function may be written in JavaScript.
const define = (options: object) => defineModel(options as Options);

Deno.test("defineModel() gives a frozen definition that isModel() knows", () => {
  const model = defineModel({ predict });
  assert(isModel(model) && Object.isFrozen(model) && Object.isFrozen(model["~model"]));
  for (const other of [undefined, null, {}, predict, "x"]) assert(!isModel(other));
});

Deno.test("defineModel() refuses a definition without handlers", () => {
  assertThrows(() => define({}), TypeError, "it has no handler, wanted predict, stream, batch or chat");
  assertThrows(() => define({ load: () => 1 }), TypeError, "it has no handler");
});

Deno.test("defineModel() refuses at once what cannot be meant", () => {
  const cases: [object, typeof TypeError | typeof RangeError, string][] = [
    [{ predict, name: "Digits" }, RangeError, 'Cannot name a model "Digits": wanted lower-case letters'],
    [{ predict, version: "1 beta" }, RangeError, 'version is "1 beta", wanted letters, digits'],
    [{ predict, version: "" }, RangeError, 'version is ""'],
    [{ predict, version: "1@2" }, RangeError, 'version is "1@2"'],
    [{ predict, input: { dtype: "float" } }, TypeError, 'Cannot define input: dtype is "float"'],
    [{ predict, output: { y: { dtype: "int8", shape: [-2] } } }, RangeError, 'Cannot define output "y": shape is [-2]'],
    [{ predict, params: { shape: { type: "string" } } }, RangeError, 'param "shape": the name is reserved'],
    [{ predict, batching: { maxSize: 4 } }, TypeError, "batching is set without a batch handler"],
    [{ batch: predict, batching: { maxSize: 0 } }, RangeError, "batching.maxSize is 0, wanted a whole number from 1"],
    [{ batch: predict, batching: { maxSize: 4, maxDelayMs: -1 } }, RangeError, "batching.maxDelayMs is -1"],
    [{ predict, session: { init: predict } }, TypeError, "session is set without a chat handler"],
    [{ predict, close: predict }, TypeError, "close is set without a chat handler"],
    [
      { chat, session: { init: predict, idleMs: -1 } },
      RangeError,
      "session.idleMs is -1, wanted a whole number from 0",
    ],
    [{ chat, session: { init: predict, maxTurns: 0 } }, RangeError, "session.maxTurns is 0"],
    [{ chat, session: { init: predict, maxCharacters: 1.5 } }, RangeError, "session.maxCharacters is 1.5"],
  ];
  for (const [options, type, text] of cases) assertThrows(() => define(options), type, text);
});

Deno.test("checkName() accepts what can be a file's name and a caller's", () => {
  for (const name of ["a", "0", "image_classifier_v1", "gpt-2", "x".repeat(100)]) checkName(name);
  for (const name of ["", "A", "a b", "a.b", "a@1", "_a", "-a", "é", "x".repeat(101), "a\n"]) {
    assertThrows(() => checkName(name), RangeError, "wanted lower-case letters");
  }
});

const kindsOf = (options: object) => resolveModel(define(options), "model").kinds;

Deno.test("resolveModel() knows what each handler can answer, fallbacks included", () => {
  assertEquals(kindsOf({ predict }), ["predict", "stream", "batch"]);
  assertEquals(kindsOf({ batch: predict }), ["predict", "stream", "batch"]);
  assertEquals(kindsOf({ stream: chat }), ["stream"]);
  assertEquals(kindsOf({ chat }), ["chat"]);
  assertEquals(kindsOf({ predict, stream: chat, batch: predict, chat }), ["predict", "stream", "batch", "chat"]);
});

Deno.test("resolveModel() fills in the defaults", () => {
  const model = resolveModel(define({ chat }), "bot");
  assertEquals([model.name, model.version, model.maxBatch], ["bot", "1", 32]);
  assertEquals([model.input, model.output, model.params], [undefined, undefined, undefined]);
  assertEquals(model.session, { idleMs: 60_000, maxTurns: 100, maxCharacters: 100_000 });
  assertEquals([model.initSession(), model.hasClose], [undefined, false]);
});

Deno.test("resolveModel() prefers what the definition says over what its file does", () => {
  const own = resolveModel(define({ predict, name: "own", version: "2.1" }), "file", "7");
  assertEquals([own.name, own.version], ["own", "2.1"]);
  const filed = resolveModel(define({ predict }), "file", "7");
  assertEquals([filed.name, filed.version], ["file", "7"]);
  assertThrows(() => resolveModel(define({ predict }), "Not A Name"), RangeError, 'Cannot name a model "Not A Name"');
});

Deno.test("resolveModel() names tensors and keeps the handlers", () => {
  const options = {
    input: { b: { dtype: "int8" }, a: { dtype: "any" } },
    output: { dtype: "string" },
    batching: { maxSize: 4 },
    batch: predict,
    session: { init: () => 5, idleMs: 0, maxTurns: 1, maxCharacters: 2 },
    chat,
  };
  const model = resolveModel(define(options) as AnyModel, "model");
  assertEquals(model.input?.map(({ name }) => name), ["b", "a"]);
  assertEquals(model.output?.map(({ name }) => name), ["0"]);
  assertEquals([model.singleInput, model.singleOutput, model.maxBatch], [false, true, 4]);
  assertEquals([model.initSession(), model.session], [5, { idleMs: 0, maxTurns: 1, maxCharacters: 2 }]);
  assertStrictEquals(model.handlers.batch, options.batch);
});

Deno.test("describeModel() gives all that callers may know, and what a worker's message can carry", () => {
  const model = resolveModel(
    define({
      description: "Talks",
      version: "2",
      input: { a: { dtype: "int8", shape: [-1] } },
      output: { dtype: "string" },
      params: { top: { type: "integer", default: 1, min: 0 } },
      batching: { maxSize: 4 },
      batch: predict,
      session: { init: () => 5, idleMs: 9 },
      chat,
      close: predict,
    }) as AnyModel,
    "model",
  );
  const description = describeModel(model);
  assertEquals(structuredClone(description), description);
  const { handlers: _handlers, initSession: _init, singleInput: _in, singleOutput: _out, ...known } = model;
  assertEquals(description, known);
  assertEquals([description.kinds, description.maxBatch, description.hasClose], [
    ["predict", "stream", "batch", "chat"],
    4,
    true,
  ]);
  assertEquals(description.session.idleMs, 9);
});

Deno.test("defineModel() takes batching with a batch handler, or where predict can be given several requests at once", () => {
  const spec = { dtype: "float32", shape: [-1, 2] } as const;
  const batching = { maxSize: 4 };
  const predict = ({ data }: { readonly data: Float32Array }) => data;
  const { batching: resolved } = resolveModel(defineModel({ batching, input: spec, output: spec, predict }), "m");
  assertEquals(resolved, { maxSize: 4, maxDelayMs: 5, preferred: [] });
  assertEquals(resolveModel(defineModel({ batching, batch: () => [] }), "m").batching?.maxSize, 4);
  assertEquals(resolveModel(defineModel({ batch: () => [] }), "m").batching, undefined);
  const flat = { dtype: "float32", shape: [2] } as const;
  for (const [input, output] of [[flat, spec], [spec, flat]] as const) {
    assertThrows(() => defineModel({ batching, input, output, predict }), TypeError, "first dim of -1");
  }
  assertThrows(() => defineModel({ batching, predict: () => [] }), TypeError, "first dim of -1");
  assertThrows(
    () => defineModel({ batching: { maxSize: 4, preferred: [0] }, batch: () => [] }),
    RangeError,
    "batching.preferred is 0",
  );
});
