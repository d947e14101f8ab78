import { assertEquals, assertThrows } from "tensorlet/assert";
import {
  checkIoSpec,
  checkParamSpecs,
  formatSpec,
  type IoSpec,
  isSingleSpec,
  namedSpecs,
  paramProblem,
  type ParamSpecs,
} from "./spec.ts";

Deno.test("namedSpecs() keeps the order of declaration and names a single tensor 0", () => {
  assertEquals(namedSpecs({ dtype: "int8", shape: [2] }), [{ dtype: "int8", shape: [2], name: "0" }]);
  const specs = namedSpecs({ z: { dtype: "int8" }, a: { dtype: "string", optional: true } });
  assertEquals(specs.map(({ name }) => name), ["z", "a"]);
});

Deno.test("isSingleSpec() takes a tensor named dtype for several by name", () => {
  assertEquals(isSingleSpec({ dtype: "any" }), true);
  assertEquals(isSingleSpec({ dtype: { dtype: "int8" } }), false);
});

Deno.test("checkIoSpec() accepts every name, dtype and shape that can be meant", () => {
  checkIoSpec({ dtype: "any" }, "input");
  checkIoSpec({ dtype: "bfloat16", shape: [] }, "input");
  checkIoSpec({ Image_1: { dtype: "uint8", shape: [-1, 0, 3] }, "a.b/c:0-x": { dtype: "bytes" } }, "input");
});

Deno.test("checkIoSpec() refuses what cannot be meant, saying where", () => {
  const cases: [unknown, typeof TypeError | typeof RangeError, string][] = [
    [{ dtype: "float" }, TypeError, 'Cannot define input: dtype is "float", wanted "any" or one of bool, int8'],
    [{ x: { dtype: "Float32" } }, TypeError, 'Cannot define input "x": dtype is "Float32"'],
    [{ x: {} }, TypeError, 'input "x": dtype is undefined'],
    [{ dtype: "int8", shape: [-2] }, RangeError, "Cannot define input: shape is [-2], wanted whole numbers from -1"],
    [{ dtype: "int8", shape: [1.5] }, RangeError, "shape is [1.5]"],
    [{ dtype: "int8", shape: 3 }, RangeError, "shape is 3"],
    [{ 1: { dtype: "int8" } }, RangeError, 'Cannot define input "1": a name starts with a letter'],
    [{ "": { dtype: "int8" } }, RangeError, 'Cannot define input ""'],
    [{ ["__proto__"]: { dtype: "int8" } }, RangeError, 'Cannot define input "__proto__"'],
  ];
  for (const [spec, type, text] of cases) assertThrows(() => checkIoSpec(spec as IoSpec, "input"), type, text);
});

Deno.test("checkParamSpecs() accepts every type with a fitting default", () => {
  checkParamSpecs({
    a: { type: "number", default: 0.5, min: 0, max: 1 },
    b: { type: "integer", default: -3 },
    c: { type: "string", default: "x", enum: ["x", "y"] },
    d: { type: "boolean", default: false },
    e: { type: "string" },
  });
});

Deno.test("checkParamSpecs() refuses reserved names, unknown types and defaults that do not fit", () => {
  const cases: [unknown, typeof TypeError | typeof RangeError, string][] = [
    [{ shape: { type: "string" } }, RangeError, 'param "shape": the name is reserved (shape, output, resume_from)'],
    [{ output: { type: "string" } }, RangeError, 'param "output": the name is reserved'],
    [{ resume_from: { type: "integer" } }, RangeError, 'param "resume_from": the name is reserved'],
    [{ ["__proto__"]: { type: "string" } }, RangeError, 'param "__proto__": the name is reserved'],
    [{ a: { type: "float" } }, TypeError, 'param "a": type is "float", wanted number, integer, string or boolean'],
    [{ a: { type: "integer", default: "3" } }, TypeError, 'param "a": default is a string, wanted a number'],
    [{ a: { type: "boolean", default: 1 } }, TypeError, "default is a number, wanted a boolean"],
    [{ a: { type: "integer", default: 1.5 } }, RangeError, "default is 1.5, wanted a whole number"],
    [{ a: { type: "number", default: 2, max: 1 } }, RangeError, "default is 2, wanted at most 1"],
    [{ a: { type: "string", default: "z", enum: ["x", "y"] } }, RangeError, 'default is z, wanted one of "x", "y"'],
  ];
  for (const [specs, type, text] of cases) assertThrows(() => checkParamSpecs(specs as ParamSpecs), type, text);
});

Deno.test("paramProblem() checks bounds, both included", () => {
  const spec = { type: "integer", min: 1, max: 3 } as const;
  assertEquals([0, 1, 3, 4].map((value) => paramProblem(spec, value)), [
    "wanted at least 1",
    undefined,
    undefined,
    "wanted at most 3",
  ]);
});

Deno.test("paramProblem() refuses what is no finite number, and inexact integers", () => {
  assertEquals(paramProblem({ type: "number" }, NaN), "wanted a number");
  assertEquals(paramProblem({ type: "number" }, Infinity), "wanted a number");
  assertEquals(paramProblem({ type: "integer" }, 2 ** 53), "wanted a whole number");
});

Deno.test("formatSpec() writes dtype, shape and whether it is optional", () => {
  assertEquals(formatSpec({ dtype: "float32", shape: [-1, 28, 28] }), "float32[-1,28,28]");
  assertEquals(formatSpec({ dtype: "any", optional: true }), "any?");
  assertEquals(formatSpec({ dtype: "int8", shape: [] }), "int8[]");
});
