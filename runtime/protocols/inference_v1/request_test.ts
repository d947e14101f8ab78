import { assert, assertEquals } from "tensorlet/assert";
import { assertFails, floats } from "../../../test/harness/calls.ts";
import type { CatalogEntry } from "../../core/catalog.ts";
import { defineModel, resolveModel } from "../../core/define.ts";
import type { IoSpec, ParamSpecs } from "../../core/spec.ts";
import { type AnyTensor, tensor } from "../../core/tensor.ts";
import { checkOutputName, inputOf, outputOf, readParams } from "./request.ts";

function entryOf(options: { input?: IoSpec; output?: IoSpec; params?: ParamSpecs } = {}): CatalogEntry {
  const model = resolveModel(defineModel({ ...options, predict: (() => []) as never }), "model");
  return { ...model, state: "ready", revision: 1 };
}

const shaped = (shape: readonly number[]) => entryOf({ input: { dtype: "float32", shape } });
const shapeOf = (entry: CatalogEntry, count: number, asked?: string) =>
  Object.values(inputOf(entry, new Array(count).fill(0), asked))[0]?.shape;

Deno.test("readParams() joins metadata and message, which wins", () => {
  const metadata = new Headers({ "param-top": "1", "param-rate": "2", "other": "3" });
  const { params, shape, output } = readParams(entryOf(), metadata, { rate: "5", mode: "x" });
  assertEquals([{ ...params }, shape, output], [{ top: "1", rate: "5", mode: "x" }, undefined, undefined]);
});

Deno.test("readParams() takes what the protocol itself reads apart", () => {
  const message = { shape: "1,2", output: "y", resume_from: "3", top: "4" };
  const { params, shape, output } = readParams(entryOf(), new Headers(), message);
  assertEquals([{ ...params }, shape, output], [{ top: "4" }, "1,2", "y"]);
  assertEquals(readParams(entryOf(), new Headers({ "param-output": "z" })).output, "z");
});

Deno.test("readParams() finds a declared name in other letters, for metadata has only lower case", () => {
  const entry = entryOf({ params: { topK: { type: "integer" } } });
  assertEquals({ ...readParams(entry, new Headers({ "param-topK": "4" })).params }, { topK: "4" });
});

Deno.test("readParams() takes any name for data", () => {
  const message = Object.fromEntries([["__proto__", "x"], ["constructor", "y"]]);
  const { params } = readParams(entryOf(), new Headers(), message);
  assertEquals(Object.keys(params).sort(), ["__proto__", "constructor"]);
  assert(Object.getPrototypeOf(params) === null);
});

Deno.test("inputOf() gives flat values to a function that declares nothing", () => {
  assertEquals(inputOf(entryOf(), [1, 2.5], undefined), floats(1, 2.5));
  assertEquals(inputOf(entryOf(), [], undefined), floats());
});

Deno.test("inputOf() shapes values as declared, or as asked", () => {
  assertEquals(shapeOf(shaped([-1, 2]), 6), [3, 2]);
  assertEquals(shapeOf(shaped([]), 1), []);
  assertEquals(shapeOf(shaped([-1, -1, 2]), 8, "2,2,2"), [2, 2, 2]);
  assertEquals(shapeOf(entryOf(), 6, " 2 , -1 "), [2, 3]);
  assertEquals(shapeOf(entryOf(), 1, ""), []);
  assertEquals(shapeOf(entryOf(), 0, "0,3"), [0, 3]);
});

Deno.test("inputOf() says why values cannot be shaped", async () => {
  await assertFails("invalid_argument", "Cannot shape input 0: 5 values do not fill shape [-1,2]", () => {
    shapeOf(shaped([-1, 2]), 5);
  });
  await assertFails("invalid_argument", 'more than one unknown dim; send all of it as params["shape"]', () => {
    shapeOf(shaped([-1, -1]), 4);
  });
  await assertFails("invalid_argument", "5 values do not fill shape [2,3]", () => shapeOf(entryOf(), 5, "2,3"));
  const named = entryOf({ input: { image: { dtype: "float32", shape: [4] } } });
  await assertFails("invalid_argument", 'Cannot shape input "image": 3 values', () => shapeOf(named, 3));
});

Deno.test("inputOf() refuses a shape that is none", async () => {
  for (const asked of ["2,x", "2,,3", "-2", "1.5", "1e3", "[2,3]", "2;3", ",", "9".repeat(16), "1,".repeat(64) + "1"]) {
    await assertFails("invalid_argument", 'Cannot read params["shape"]: got "', () => shapeOf(entryOf(), 6, asked));
  }
  await assertFails(
    "invalid_argument",
    'got "2,x", wanted dims like "1,224,224,3"',
    () => shapeOf(entryOf(), 2, "2,x"),
  );
});

Deno.test("inputOf() counts a shape without overflow", async () => {
  const huge = "4294967296,4294967296";
  await assertFails("invalid_argument", "0 values do not fill shape", () => shapeOf(entryOf(), 0, huge));
});

Deno.test("inputOf() gives its name to the one tensor, and says when the function needs more", async () => {
  const optional = { x: { dtype: "float32" }, y: { dtype: "float32", optional: true } } as const;
  assertEquals(Object.keys(inputOf(entryOf({ input: optional }), [1], undefined)), ["x"]);
  const both = entryOf({ input: { x: { dtype: "float32" }, y: { dtype: "float32" } } });
  await assertFails(
    "invalid_argument",
    'got 1 input tensors, wanted 2 ("x", "y")',
    () => inputOf(both, [1], undefined),
  );
});

Deno.test("inputOf() sends no tensor when there are no values and none is required", () => {
  const optional = entryOf({ input: { x: { dtype: "float32", optional: true } } });
  assertEquals(inputOf(optional, [], undefined), {});
  assertEquals(inputOf(entryOf({ input: {} }), [], undefined), {});
  assertEquals(Object.keys(inputOf(optional, [], "0")), ["x"]);
});

Deno.test("checkOutputName() refuses a name that the function is known not to have", async () => {
  const entry = entryOf({ output: { scores: { dtype: "float32" }, label: { dtype: "int64" } } });
  checkOutputName(entry, undefined);
  checkOutputName(entry, "label");
  checkOutputName(entryOf(), "anything");
  await assertFails("invalid_argument", 'Cannot choose output "labels": the function has "scores", "label"', () => {
    checkOutputName(entry, "labels");
  });
});

const output = {
  scores: tensor("float32", [0.5]),
  label: tensor("int64", [7n]),
  text: tensor("string", ["x"]),
} as Record<
  string,
  AnyTensor
>;

Deno.test("outputOf() gives the first output, or the one asked for, as float32", () => {
  assertEquals(outputOf(output, undefined), Float32Array.of(0.5));
  assertEquals(outputOf(output, "label"), Float32Array.of(7));
  assertEquals(outputOf({}, undefined), new Float32Array(0));
});

Deno.test("outputOf() gives the nearest float of a 64-bit integer", () => {
  assertEquals(outputOf({ "0": tensor("int64", [2n ** 53n + 1n]) }, undefined), Float32Array.of(2 ** 53));
});

Deno.test("outputOf() says that texts cannot be expressed, and what can carry them", async () => {
  await assertFails(
    "failed_precondition",
    'output "text" of dtype "string" as float32: use inference.InferenceService/Predict',
    () => outputOf(output, "text"),
  );
});

Deno.test("outputOf() says which outputs there are", async () => {
  await assertFails("invalid_argument", 'output "x": the function has "scores", "label", "text"', () => {
    outputOf(output, "x");
  });
  await assertFails("invalid_argument", 'output "constructor"', () => outputOf(output, "constructor"));
});
