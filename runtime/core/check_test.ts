import { assert, assertEquals, assertStrictEquals, assertThrows } from "tensorlet/assert";
import { assertFails } from "../../test/harness/calls.ts";
import {
  checkByteLength,
  checkInput,
  checkParams,
  completeOutput,
  fillShape,
  isTensorLike,
  nameByPosition,
  nameBySender,
  tensorLabel,
} from "./check.ts";
import { ModelError } from "./error.ts";
import { type IoSpec, namedSpecs, type ParamSpecs } from "./spec.ts";
import { type AnyTensor, type NamedTensors, tensor } from "./tensor.ts";

const IMAGE = namedSpecs({ image: { dtype: "float32", shape: [-1, 2] }, mask: { dtype: "bool", optional: true } });

Deno.test("tensorLabel() quotes names and not positions", () => {
  assertEquals([tensorLabel("input", "image"), tensorLabel("output", "0")], ['input "image"', "output 0"]);
});

Deno.test("checkInput() accepts declared tensors, optional ones left out, any dim where it says so", () => {
  checkInput(IMAGE, { image: tensor("float32", [1, 2, 3, 4], [2, 2]) });
  checkInput(IMAGE, { image: tensor("float32", [], [0, 2]), mask: tensor("bool", [1]) });
  checkInput(namedSpecs({ dtype: "any" }), { "0": tensor("string", ["a"]) });
});

Deno.test("checkInput() names the input, what it got and what it wanted", async () => {
  const check = (image: AnyTensor) => () => checkInput(IMAGE, { image });
  await assertFails(
    "invalid_argument",
    'Cannot accept input "image": got dtype "float64", wanted "float32"',
    check(tensor("float64", [1, 2], [1, 2]) as AnyTensor),
  );
  await assertFails(
    "invalid_argument",
    'got dtype ">f8", wanted "float32"',
    check({ ...tensor("float64", [1, 2], [1, 2]), sentAs: ">f8" } as AnyTensor),
  );
  const wanted = 'Cannot accept input "image": got shape [1,3], wanted [-1,2] (-1 = any)';
  await assertFails("invalid_argument", wanted, check(tensor("float32", [1, 2, 3], [1, 3]) as AnyTensor));
  await assertFails("invalid_argument", "got shape [2], wanted", check(tensor("float32", [1, 2]) as AnyTensor));
  await assertFails("invalid_argument", "got shape [], wanted [2]", () => {
    checkInput(namedSpecs({ dtype: "int8", shape: [2] }), { "0": tensor("int8", [1], []) });
  });
});

Deno.test("checkInput() tells programs which dtype is wanted, and where", () => {
  const details = (input: NamedTensors) => {
    const error = assertThrows(() => checkInput(IMAGE, input), ModelError);
    return (error as unknown as ModelError).details;
  };
  const image = tensor("float32", [1, 2], [1, 2]);
  assertEquals(details({ image, mask: tensor("int64", [1n]) }), { input: "mask", wantedDtype: "bool" });
  assertEquals(details({ image: tensor("int8", [1]) }), { input: "image", wantedDtype: "float32" });
  assertEquals(details({ image: tensor("float32", [1]) }), undefined);
});

Deno.test("checkInput() says which input is missing, also where objects inherit one of that name", async () => {
  await assertFails("invalid_argument", 'input "image" is missing, wanted float32', () => checkInput(IMAGE, {}));
  const specs = namedSpecs({ constructor: { dtype: "int8" } } as unknown as IoSpec);
  await assertFails("invalid_argument", 'input "constructor" is missing', () => checkInput(specs, {}));
});

Deno.test("nameBySender() names tensors as they are sent, where the function has names", async () => {
  const [a, b] = [tensor("float32", [1]), tensor("bool", [1])];
  assertEquals(nameBySender(IMAGE, ["mask", "image"], [b, a]), { mask: b, image: a });
  assertEquals(nameBySender(IMAGE, ["mask"], [b]), { mask: b }); // checkInput() finds what is missing
  assertEquals(nameBySender(undefined, ["x", "y"], [a, b]), { "0": a, "1": b });
  assertEquals(nameBySender(namedSpecs({ dtype: "any" }), ["x"], [a]), { "0": a });
  for (
    const [names, text] of [
      [["mask", "img"], 'Cannot accept input "img": the function has only "image", "mask"'],
      [["mask", "mask"], 'Cannot accept input "mask": it came twice'],
      [["mask"], "got 2 input tensors and 1 names"],
    ] as const
  ) {
    await assertFails("invalid_argument", text, () => nameBySender(IMAGE, names, [b, a]));
  }
});

Deno.test("nameByPosition() names tensors as declared, or by number", () => {
  const [a, b] = [tensor("float32", [1]), tensor("bool", [1])];
  assertEquals(Object.keys(nameByPosition(IMAGE, [a, b])), ["image", "mask"]);
  assertEquals(Object.keys(nameByPosition(IMAGE, [a])), ["image"]);
  assertEquals(nameByPosition(undefined, [a, b]), { "0": a, "1": b });
});

Deno.test("nameByPosition() says how many tensors it got and wants", async () => {
  const x = tensor("float32", [1]);
  await assertFails("invalid_argument", 'got 0 input tensors, wanted 1 to 2 ("image", "mask")', () => {
    nameByPosition(IMAGE, []);
  });
  await assertFails("invalid_argument", "got 3 input tensors, wanted 1 to 2", () => nameByPosition(IMAGE, [x, x, x]));
  const single = namedSpecs({ dtype: "float32" });
  await assertFails("invalid_argument", "got 2 input tensors, wanted 1 (one unnamed)", () => {
    nameByPosition(single, [x, x]);
  });
});

Deno.test("fillShape() works the one unknown dim out", () => {
  assertEquals(fillShape([-1], 3), [3]);
  assertEquals(fillShape([2, -1, 3], 12), [2, 2, 3]);
  assertEquals(fillShape([2, 3], 6), [2, 3]);
  assertEquals(fillShape([], 1), []);
  assertEquals(fillShape([-1, 4], 0), [0, 4]);
  assertEquals(fillShape([0, -1], 0), [0, 0]);
});

Deno.test("fillShape() is undefined when the elements do not fill the shape", () => {
  for (const [shape, count] of [[[-1, 4], 6], [[2, 3], 5], [[-1, -1], 4], [[], 2], [[], 0], [[0, -1], 3]] as const) {
    assertEquals(fillShape(shape, count), undefined, `[${shape}] of ${count}`);
  }
  assertEquals(fillShape([2 ** 31, 2 ** 31, -1], 1), undefined);
});

const PARAMS: ParamSpecs = {
  rate: { type: "number", min: 0 },
  top: { type: "integer", max: 10, default: 5 },
  mode: { type: "string", enum: ["a", "b"] },
  loud: { type: "boolean" },
};
const convert = (given: Record<string, string | number | boolean>) => ({ ...checkParams(PARAMS, given) });

Deno.test("checkParams() converts texts and fills in defaults", () => {
  assertEquals(convert({ rate: "2.5e-1", top: "-3", mode: "b", loud: "true" }), {
    rate: 0.25,
    top: -3,
    mode: "b",
    loud: true,
  });
  assertEquals(convert({}), { top: 5 });
  assertEquals([convert({ loud: "0" }).loud, convert({ loud: "1" }).loud], [false, true]);
  assertEquals([convert({ rate: ".5" }).rate, convert({ rate: "+7." }).rate], [0.5, 7]);
});

Deno.test("checkParams() takes values that are converted already", () => {
  assertEquals(convert({ rate: 0.5, top: 3, loud: false }), { rate: 0.5, top: 3, loud: false });
});

Deno.test("checkParams() refuses a value, naming the param, what it got and what it wants", async () => {
  const cases: [Record<string, string | number | boolean>, string][] = [
    [{ top: "2.0" }, 'Cannot accept param "top": got "2.0", wanted a whole number'],
    [{ top: "1e3" }, 'got "1e3", wanted a whole number'],
    [{ top: "0x10" }, "wanted a whole number"],
    [{ top: " 1" }, "wanted a whole number"],
    [{ top: "" }, 'got "", wanted a whole number'],
    [{ top: "9007199254740993" }, "wanted a whole number"],
    [{ top: 1.5 }, 'got "1.5", wanted a whole number'],
    [{ top: "11" }, 'got "11", wanted at most 10'],
    [{ rate: "-1" }, "wanted at least 0"],
    [{ rate: "NaN" }, 'got "NaN", wanted a number'],
    [{ rate: "Infinity" }, "wanted a number"],
    [{ rate: "1e999" }, "wanted a number"],
    [{ rate: true }, 'got "true", wanted a number'],
    [{ mode: "c" }, 'got "c", wanted one of "a", "b"'],
    [{ loud: "yes" }, 'got "yes", wanted true, false, 1 or 0'],
    [{ loud: "True" }, "wanted true, false, 1 or 0"],
  ];
  for (const [given, text] of cases) await assertFails("invalid_argument", text, () => convert(given));
});

Deno.test("checkParams() refuses params that are not declared", async () => {
  await assertFails("invalid_argument", 'param "tpo": the function has only "rate", "top", "mode", "loud"', () => {
    convert({ tpo: "1" });
  });
  const inherited = Object.fromEntries([["__proto__", "x"]]);
  await assertFails("invalid_argument", 'param "__proto__": the function has no params', () => {
    checkParams({}, inherited);
  });
  await assertFails("invalid_argument", 'param "toString"', () => convert({ toString: "x" } as never));
});

Deno.test("checkParams() lets anything through when the function declares none", () => {
  const given = { a: "b" };
  assertStrictEquals(checkParams(undefined, given), given);
});

Deno.test("completeOutput() completes bare arrays from the spec", () => {
  const single = namedSpecs({ dtype: "float32", shape: [-1, 2] });
  assertEquals(completeOutput(single, true, Float32Array.of(1, 2, 3, 4)), {
    "0": tensor("float32", [1, 2, 3, 4], [2, 2]) as AnyTensor,
  });
  const several = namedSpecs({ b: { dtype: "int64" }, a: { dtype: "string" } });
  const output = completeOutput(several, false, { a: ["x"], b: BigInt64Array.of(1n) });
  assertEquals(Object.keys(output), ["b", "a"]);
  assertEquals([output.b!.shape, output.a!.shape], [[1], [1]]);
});

Deno.test("completeOutput() names an untyped function's tensors by number", () => {
  const [a, b] = [tensor("int8", [1]), tensor("string", ["x"])];
  assertEquals(completeOutput(undefined, false, a), { "0": a });
  assertEquals(completeOutput(undefined, false, [a, b]), { "0": a, "1": b });
  assertEquals(completeOutput(undefined, false, []), {});
});

Deno.test("completeOutput() forgets how the client spelt a dtype", () => {
  const sent = { ...tensor("float32", [1]), sentAs: "<f4" };
  assertEquals(completeOutput(undefined, false, sent), { "0": tensor("float32", [1]) });
});

Deno.test("completeOutput() makes a bool's elements 0 or 1", () => {
  const bits = Uint8Array.of(0, 1);
  const same = completeOutput(undefined, false, tensor("bool", bits))["0"]!;
  assertStrictEquals(same.data, bits);
  assertEquals(completeOutput(undefined, false, tensor("bool", [0, 255, 2])), { "0": tensor("bool", [0, 1, 1]) });
});

Deno.test("completeOutput() says what is wrong with an answer", async () => {
  const single = namedSpecs({ dtype: "float32", shape: [-1, 2] });
  const several = namedSpecs({ a: { dtype: "int8" }, b: { dtype: "int8", optional: true } });
  const cases: [() => unknown, string][] = [
    [() => completeOutput(single, true, Float32Array.of(1, 2, 3)), "output 0: 3 elements do not fill shape [-1,2]"],
    [
      () => completeOutput(single, true, new Float64Array(2)),
      `output 0: got Float64Array for dtype "float32", wanted Float32Array`,
    ],
    [() => completeOutput(single, true, undefined), "output 0: it is missing, wanted float32"],
    [() => completeOutput(single, true, tensor("int8", [1, 2], [1, 2])), 'got dtype "int8", wanted "float32"'],
    [() => completeOutput(single, true, tensor("float32", [1, 2])), "got shape [2], wanted [-1,2]"],
    [() => completeOutput(several, false, {}), 'output "a": it is missing, wanted int8'],
    [() => completeOutput(several, false, undefined), 'output "a": it is missing'],
    [
      () => completeOutput(several, false, { a: new Int8Array(1), c: new Int8Array(1) }),
      'output "c": the function does not declare it',
    ],
    [
      () => completeOutput(undefined, false, undefined),
      "output 0: got undefined, wanted a tensor { dtype, shape, data }",
    ],
    [() => completeOutput(undefined, false, [tensor("int8", [1]), 3]), "output 1: got number, wanted a tensor"],
    [
      () => completeOutput(undefined, false, { dtype: "int8", shape: [3], data: new Int8Array(2) }),
      "2 elements do not fill shape [3]",
    ],
    [
      () => completeOutput(undefined, false, { dtype: "float", shape: [1], data: new Float32Array(1) }),
      'there is no dtype "float"',
    ],
  ];
  for (const [action, text] of cases) {
    const { message } = await assertFails("internal", text, action);
    assert(message.startsWith("The function's answer cannot be used: "), message);
  }
});

Deno.test("isTensorLike() wants a shape of whole numbers from 0", () => {
  assertEquals(isTensorLike({ dtype: "int8", shape: [], data: [] }), true);
  for (const shape of [[-1], [1.5], ["1"], "1", undefined, [2 ** 53]]) {
    assertEquals(isTensorLike({ dtype: "int8", shape, data: [] }), false, `${shape}`);
  }
  for (const value of [null, undefined, 1, "x", {}, new Float32Array(1)]) assertEquals(isTensorLike(value), false);
});

Deno.test("checkByteLength() counts elements", () => {
  assertEquals(checkByteLength("input 0", "float32", [2, 3], 4, 24), 6);
  assertEquals(checkByteLength("input 0", "float32", [], 4, 4), 1);
  assertEquals(checkByteLength("input 0", "float32", [5, 0, 2 ** 31], 4, 0), 0);
});

Deno.test("checkByteLength() names the input, its shape, dtype, expected and received bytes", async () => {
  await assertFails(
    "invalid_argument",
    'Cannot read input "x": shape [2,3] of "<f4" takes 24 bytes, got 23',
    () => checkByteLength('input "x"', "<f4", [2, 3], 4, 23),
  );
  await assertFails("invalid_argument", 'shape [] of "int8" takes 1 bytes, got 0', () => {
    checkByteLength("input 0", "int8", [], 1, 0);
  });
});

Deno.test("checkByteLength() computes without overflow", async () => {
  for (const shape of [[2 ** 16, 2 ** 16, 2 ** 16, 2 ** 16], [2 ** 26, 2 ** 26], [2 ** 31 - 1, 2 ** 31 - 1]]) {
    await assertFails("invalid_argument", "takes more than can be counted bytes, got 0", () => {
      checkByteLength("input 0", "float64", shape, 8, 0);
    });
  }
});

Deno.test("checkByteLength() does not repeat a shape of any length", async () => {
  const { message } = await assertFails("invalid_argument", "got 0", () => {
    checkByteLength("input 0", "int8", new Array(100_000).fill(1), 1, 0);
  });
  assert(message.length < 300);
});
