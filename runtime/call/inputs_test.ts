import { assertEquals, assertRejects } from "tensorlet/assert";
import type { DType } from "../core/dtype.ts";
import { type AnyTensor, tensor } from "../core/tensor.ts";
import { ConfigError } from "../host/error.ts";
import { readRequests, type Request } from "./inputs.ts";
import { writeNpy } from "./npy.ts";

const FILES: Readonly<Record<string, Uint8Array>> = {
  "x.npy": writeNpy(tensor("float64", [0.5, 2])),
  "./x.json": new TextEncoder().encode("[[1,\n 2],\n [3, 4]]\n"),
  "lines.jsonl": new TextEncoder().encode("[1]\n\n[2.5]\n"),
  "half.jsonl": new TextEncoder().encode("[1]\n[2.5\n"),
  "x.npz": Uint8Array.of(0x50, 0x4b, 3, 4),
  "bytes.json": Uint8Array.of(0xff, 0xfe),
};

function read(args: readonly string[], dtype?: DType, stdin = ""): Promise<readonly Request[]> {
  return readRequests(args, dtype, {
    stdin: () => Promise.resolve(new TextEncoder().encode(stdin)),
    file: (path) => FILES[path] ? Promise.resolve(FILES[path]) : Promise.reject(new Deno.errors.NotFound("os error 2")),
  });
}

async function tensors(args: readonly string[], dtype?: DType, stdin?: string): Promise<readonly AnyTensor[]> {
  const [request] = await read(args, dtype, stdin);
  return request!.inputs.map(({ tensor }) => tensor);
}

Deno.test("arguments are tensors in their order: JSON, files, stdin", async () => {
  assertEquals(await tensors([]), []);
  assertEquals(await tensors(["[1, 2]", "x.npy", "./x.json", "-"], undefined, "[true]"), [
    tensor("int64", [1n, 2n]),
    tensor("float64", [0.5, 2]),
    tensor("int64", [1n, 2n, 3n, 4n], [2, 2]),
    tensor("bool", Uint8Array.of(1)),
  ]);
  assertEquals(await tensors(["-1e3"]), [tensor("float32", [-1000], [])]);
});

Deno.test("--dtype converts what is JSON and what is a file", async () => {
  assertEquals(await tensors(["[1, 2]", "x.npy"], "float32"), [tensor("float32", [1, 2]), tensor("float32", [0.5, 2])]);
  assertEquals(await tensors(["hello"], "string"), [tensor("string", ["hello"], [])]);
  await assertRejects(() => tensors(["x.npy"], "int8"), ConfigError, "Cannot read x.npy: element [0] is 0.5");
});

Deno.test("names come with =, or from an object", async () => {
  const names = async (...args: readonly string[]) => (await read(args))[0]!.inputs.map(({ name }) => name);
  assertEquals(await names("mask=[true]", "x=x.npy", "[1]", "t=a text"), ["mask", "x", undefined, "t"]);
  assertEquals(await names('{"a": [1], "b": {"dtype": "int8", "shape": [1], "data": [1]}}'), ["a", "b"]);
  await assertRejects(() => read(['x={"a": [1]}']), ConfigError, 'Cannot read input "x": wanted one tensor');
});

Deno.test("an object with dtype and data is what --json prints of a tensor", async () => {
  assertEquals(await tensors(['{"dtype": "int8", "shape": [2, 1], "data": [1, 2]}']), [tensor("int8", [1, 2], [2, 1])]);
  assertEquals(await tensors(['{"dtype": "int8", "data": [[1, 2]]}']), [tensor("int8", [1, 2], [1, 2])]);
  assertEquals(await tensors(['{"dtype": "int8", "shape": [1], "data": [1]}'], "float32"), [tensor("float32", [1])]);
});

Deno.test("values of JSON can be had in another dtype, unless somebody has chosen one", async () => {
  const [request] = await read(["[1, 2]", "x.npy", '{"dtype": "int8", "data": [1]}', "n=[3]"]);
  const [free, file, whole, named] = request!.inputs;
  assertEquals(free!.as!("float32").tensor, tensor("float32", [1, 2]));
  assertEquals([file!.as, whole!.as, free!.as!("float32").as], [undefined, undefined, undefined]);
  assertEquals([named!.as!("int8").name, named!.as!("int8").tensor], ["n", tensor("int8", [3])]);
  assertEquals((await read(["[1, 2]"], "int64"))[0]!.inputs[0]!.as, undefined);
});

Deno.test("words that are no file are a text", async () => {
  assertEquals(await read(["It was 3 = 3, [really]"]), [{ inputs: [], text: "It was 3 = 3, [really]" }]);
  assertEquals((await read(["[1]", "3 pigs"]))[0]!.text, "3 pigs");
  await assertRejects(() => read(["one", "two"]), ConfigError, 'Cannot send two texts, "one" and "two"');
});

Deno.test("lines of JSON are calls of their own", async () => {
  const all = await read(["lines.jsonl"]);
  assertEquals(all.map(({ inputs }) => inputs[0]!.tensor), [tensor("int64", [1n]), tensor("float32", [2.5])]);
  assertEquals((await read(["-"], undefined, '{"x": [1]}\n{"x": [2]}')).length, 2);
  await assertRejects(() => read(["lines.jsonl", "[1]"]), ConfigError, "it has 2 lines, which are calls of their own");
});

for (
  const [arg, message] of [
    ["[1, 2", "Cannot read input 0 as JSON: expected ',' or ']'"],
    ["1,2,3", "Cannot read input 0 as JSON: unexpected"],
    ["[[1], 2]", "Cannot read input 0: element [1] is 2, wanted an array of 1"],
    ["none.npy", "Cannot read none.npy: there is no such file"],
    ["x.npz", "Cannot read x.npz: it is an archive; save single arrays with np.save"],
    ["bytes.json", "Cannot read bytes.json: it is neither .npy nor a text in UTF-8"],
    ["half.jsonl", "Cannot read half.jsonl, line 2 as JSON:"],
    ["-", "Cannot read stdin: it is empty"],
    ['{"dtype": "int7", "data": [1]}', 'dtype is "int7", wanted one of bool'],
    ['{"dtype": "int8", "data": [1], "dims": [1]}', 'there is no field "dims"'],
    ['{"a": {"data": [1]}}', 'Cannot read input 0, "a" as a tensor { dtype, shape, data }: dtype is null'],
    ['{"dtype": "int8", "shape": [3], "data": [1]}', "1 values do not fill shape [3]"],
    ['{"dtype": "int8", "shape": "1", "data": [1]}', "1 values do not fill shape"],
  ] as const
) {
  Deno.test(`${arg} is refused in one line`, async () => {
    const error = await assertRejects(() => read([arg]), ConfigError, message) as unknown as ConfigError;
    assertEquals(error.message.includes("\n"), false);
  });
}

Deno.test("stdin is read once", async () => {
  await assertRejects(() => read(["-", "x=-"], undefined, "[1]"), ConfigError, "Cannot read stdin twice");
});
