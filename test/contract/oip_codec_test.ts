// The codec of the Open Inference Protocol against protobufjs, on messages that no encoder makes.
import { Buffer } from "node:buffer";
import protobuf from "protobufjs";
import { ModelError } from "tensorlet";
import { assert, assertEquals } from "tensorlet/assert";
import { type DType, DTYPES } from "../../runtime/core/dtype.ts";
import { type AnyTensor, tensor } from "../../runtime/core/tensor.ts";
import { join, withField } from "../../runtime/protocols/parts.ts";
import { decodeContents, encodeContents, isTypable } from "../../runtime/protocols/oip_v2/contents.ts";
import { datatypeOf } from "../../runtime/protocols/oip_v2/datatype.ts";
import { decodeInferRequest } from "../../runtime/protocols/oip_v2/request.ts";
import { encodeAnswer } from "../../runtime/protocols/oip_v2/response.ts";

const root = protobuf.loadSync(new URL("../../protos/inference/grpc_predict_v2.proto", import.meta.url).pathname);
const typeOf = (name: string) => root.lookupType(`inference.${name}`);
const requestType = typeOf("ModelInferRequest");
const contentsType = typeOf("InferTensorContents");
const PLAIN = { longs: String, defaults: true, arrays: true, objects: true, oneofs: true } as const;

// The same numbers in every run.
function createRandom(seed: number): (below: number) => number {
  return (below) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor(seed / 2 ** 32 * below);
  };
}

const text = (value: string) => new TextEncoder().encode(value);
const field = (number: number, ...content: Uint8Array[]) => join(withField([], number, content));
const varint = (number: number, ...bytes: number[]) => Uint8Array.of(number * 8, ...bytes);
const NEGATIVE = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];

// A well-formed ModelInferRequest whose fields, and those of its parts, come in an order of chance, some twice.
function createMessage(seed: number): Uint8Array {
  const random = createRandom(seed);
  const shuffled = (parts: Uint8Array[]) => {
    for (let i = parts.length - 1; i > 0; i--) {
      const j = random(i + 1);
      [parts[i], parts[j]] = [parts[j]!, parts[i]!];
    }
    return join(parts);
  };
  const some = (most: number, make: () => Uint8Array) => Array.from({ length: random(most + 1) }, make);
  const value = () =>
    [
      varint(1, random(2)),
      random(2) ? varint(2, ...NEGATIVE) : varint(2, 129, random(100)),
      field(3, text("v\ufeff".repeat(random(3)))),
      join([Uint8Array.of(4 * 8 + 1), new Uint8Array(Float64Array.of(random(1000) / 7).buffer)]),
      varint(5, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1),
    ][random(5)]!;
  const parameter = (number: number) => field(number, shuffled([field(1, text(`p${random(3)}`)), field(2, value())]));
  const shape = () => random(2) ? field(3, Uint8Array.of(2, 200, 1, 0)) : varint(3, random(100));
  const tensorPart = () =>
    [
      () => field(1, text(`x${random(5)}`)),
      () => field(2, text("INT32")),
      shape,
      () => parameter(4),
      () => varint(9, random(100)),
    ][random(5)]!();
  const contents = () => field(5, random(2) ? field(2, Uint8Array.of(random(100), 128, 1)) : varint(2, random(100)));
  const withRaw = random(2) === 1;
  const tensorCount = random(4);
  const tensors = Array.from({ length: tensorCount }, () => {
    return field(5, shuffled([...some(6, tensorPart), ...withRaw ? [] : some(1, contents)]));
  });
  const raw = withRaw ? tensors.map(() => field(7, new Uint8Array(random(300)).fill(random(256)))) : [];
  return shuffled([
    ...some(2, () => field(1, text(`m${random(9)}`))),
    ...some(2, () => field(2, text(`${random(9)}`))),
    ...some(2, () => field(3, text("é".repeat(random(90))))),
    ...some(3, () => parameter(4)),
    ...some(2, () => field(6, shuffled([field(1, text("o")), ...some(2, () => parameter(2))]))),
    ...some(1, () => Uint8Array.of(12 * 8 + 3, ...varint(1, 5), 13 * 8 + 3, 13 * 8 + 4, 12 * 8 + 4)), // groups
    ...some(1, () => Uint8Array.of(14 * 8 + 5, 1, 2, 3, 4)),
    ...tensors,
    ...raw,
  ]);
}

// deno-lint-ignore no-explicit-any
type Plain = any;

function parametersOf(map: Plain): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(map as Record<string, Plain>).map(([name, value]) => {
      const plain = value[value.parameterChoice];
      return [name, /int/.test(value.parameterChoice) ? BigInt(plain) : plain];
    }),
  );
}

Deno.test("oip codec: requests in any order decode as protobufjs decodes them", () => {
  for (let seed = 1; seed <= 2000; seed++) {
    const bytes = createMessage(seed);
    const wanted: Plain = requestType.toObject(requestType.decode(bytes), PLAIN);
    const got = decodeInferRequest(bytes);
    assertEquals([got.model, got.version, got.id], [wanted.modelName, wanted.modelVersion, wanted.id], `seed ${seed}`);
    assertEquals(Object.fromEntries(got.parameters), parametersOf(wanted.parameters), `seed ${seed}`);
    assertEquals(
      got.outputs.map(({ name, parameters }) => [name, Object.fromEntries(parameters)]),
      wanted.outputs.map((output: Plain) => [output.name, parametersOf(output.parameters)]),
    );
    assertEquals(
      got.inputs.map(({ name, datatype, shape }) => [name, datatype, shape.map(String)]),
      wanted.inputs.map(({ name, datatype, shape }: Plain) => [name, datatype, shape]),
      `seed ${seed}`,
    );
    for (const [i, input] of got.inputs.entries()) {
      const raw: Uint8Array | undefined = wanted.rawInputContents[i];
      const elements: readonly number[] = raw ?? wanted.inputs[i].contents?.intContents ?? [];
      const data = input.read(raw ? "uint8" : "int32", elements.length, "input");
      assertEquals([...data as Uint8Array], [...elements], `seed ${seed}`);
    }
  }
});

Deno.test("oip codec: the last value of a parameter counts, which protobufjs does not know", () => {
  const value = join([varint(1, 1), field(3, text("a")), varint(2, 5)]);
  const bytes = join([field(4, field(1, text("p")), field(2, value)), field(4, field(1, text("p")), field(2, value))]);
  assertEquals([...decodeInferRequest(bytes).parameters], [["p", 5n]]);
});

Deno.test("oip codec: byte strings do not share the message's memory, even where it is a Buffer", () => {
  const bytes = Buffer.from(field(8, text("ab")));
  const [element] = decodeContents(bytes, "bytes", 1, "x") as Uint8Array[];
  bytes.fill(0);
  assertEquals(element, Uint8Array.of(97, 98));
});

const EXTREMES: Readonly<Record<DType, AnyTensor["data"]>> = {
  bool: Uint8Array.of(0, 1, 1),
  int8: Int8Array.of(-128, -1, 0, 127),
  int16: Int16Array.of(-32_768, -1, 0, 32_767),
  int32: Int32Array.of(-(2 ** 31), -1, 0, 127, 128, 2 ** 28, 2 ** 31 - 1),
  int64: BigInt64Array.of(-(2n ** 63n), -1n, 0n, 127n, 128n, 2n ** 32n, 2n ** 35n, 2n ** 53n + 1n, 2n ** 63n - 1n),
  uint8: Uint8Array.of(0, 127, 128, 255),
  uint16: Uint16Array.of(0, 16_383, 16_384, 65_535),
  uint32: Uint32Array.of(0, 2 ** 28 - 1, 2 ** 28, 2 ** 31, 2 ** 32 - 1),
  uint64: BigUint64Array.of(0n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 56n, 2n ** 63n, 2n ** 64n - 1n),
  float16: Float16Array.of(65_504, -0, NaN),
  bfloat16: Uint16Array.of(0x7fc1, 0x8000),
  float32: Float32Array.of(NaN, -0, Infinity, 1e-45),
  float64: Float64Array.of(NaN, -0, -Infinity, 5e-324),
  string: ["", "é\ufeff😀", "\0"],
  bytes: [Uint8Array.of(), Uint8Array.of(255, 0)],
};

Deno.test("oip codec: typed contents are what protobufjs makes of them, both ways, in every dtype", () => {
  for (const dtype of DTYPES.filter(isTypable)) {
    for (const data of [EXTREMES[dtype], EXTREMES[dtype].slice(0, 0)]) {
      const value = tensor(dtype, data as never) as AnyTensor;
      const bytes = join([...encodeContents(value), new Uint8Array()]);
      const plain = contentsType.toObject(contentsType.decode(bytes), { longs: String }) as Record<string, unknown[]>;
      const [elements = []] = Object.values(plain);
      const wanted = Array.from(data as ArrayLike<unknown>, (element) => {
        if (dtype === "bool") return element === 1;
        if (dtype === "string") return text(element as string);
        return typeof element === "bigint" ? `${element}` : element;
      });
      assertEquals(elements.map((element) => element instanceof Uint8Array ? [...element] : element), [
        ...wanted.map((element) => element instanceof Uint8Array ? [...element] : element),
      ], dtype);
      const longs = contentsType.encode(contentsType.fromObject(plain)).finish();
      assertEquals(decodeContents(longs, dtype, data.length, "x"), data, dtype);
      assertEquals(decodeContents(bytes, dtype, data.length, "x"), data, dtype);
    }
  }
});

Deno.test("oip codec: answers decode with protobufjs as what they were, typed and raw", () => {
  const type = typeOf("ModelInferResponse");
  const outputs = DTYPES.map((dtype) => ({
    name: dtype,
    tensor: tensor(dtype, EXTREMES[dtype] as never) as AnyTensor,
  }));
  const answer = { model: "m", version: "2", id: "7", outputs, final: true };
  const raw: Plain = type.toObject(type.decode(join(encodeAnswer(answer, true, { last: true }))), PLAIN);
  assertEquals([raw.modelName, raw.modelVersion, raw.id, raw.parameters.last.boolParam], ["m", "2", "7", true]);
  assertEquals(raw.rawOutputContents.length, outputs.length, "FP16 and BF16 make all of them raw");
  assertEquals(raw.outputs.map((output: Plain) => [output.name, output.datatype, output.shape, output.contents]), [
    ...outputs.map(({ name, tensor }) => [name, datatypeOf(tensor.dtype), tensor.shape.map(String), null]),
  ]);
  const some = outputs.filter(({ tensor }) => isTypable(tensor.dtype));
  const typed: Plain = type.toObject(type.decode(join(encodeAnswer({ ...answer, outputs: some }, true))), PLAIN);
  assertEquals(typed.rawOutputContents, []);
  assertEquals(typed.outputs[4].contents.int64Contents.slice(0, 2), ["-9223372036854775808", "-1"]);
});

Deno.test("oip codec: raw tensors in one message do not touch each other, whatever their alignment", () => {
  for (let shift = 0; shift < 16; shift++) {
    const first = BigInt64Array.from({ length: 10_000 }, (_, i) => -BigInt(i));
    const second = Float64Array.from({ length: 10_000 }, (_, i) => 0.1 + i / 3);
    const message = join([
      field(3, text("i".repeat(1 + shift))),
      field(5, field(1, text("a"))),
      field(5, field(1, text("b"))),
      field(7, new Uint8Array(first.buffer)),
      field(7, new Uint8Array(second.buffer)),
    ]);
    const { inputs } = decodeInferRequest(shift < 8 ? message : Buffer.from(message));
    const b = inputs[1]!.read("float64", 10_000, "b");
    const a = inputs[0]!.read("int64", 10_000, "a");
    assertEquals([a, b], [first, second]);
  }
});

Deno.test("oip codec: random contents are read, or refused with a ModelError", () => {
  for (let seed = 1; seed <= 3000; seed++) {
    const random = createRandom(seed);
    const run = field(1 + random(8), Uint8Array.from({ length: random(20) }, () => random(128)));
    const dtype = DTYPES[random(DTYPES.length)]!;
    try {
      assertEquals(decodeContents(run, dtype, 3, "x").length, 3);
    } catch (error) {
      assert(error instanceof ModelError && error.code === "invalid_argument", `${dtype}: ${error}`);
    }
  }
});
