// The codecs of messages with many floats against proto-loader's own, on messages that its encoder never makes.
import { loadSync, type MessageTypeDefinition } from "@grpc/proto-loader";
import { ModelError } from "tensorlet";
import { assert, assertEquals } from "tensorlet/assert";
import type { RpcMethod } from "../../runtime/protocols/adapter.ts";
import { createService } from "../../runtime/protocols/codec.ts";
import { answerParts } from "../../runtime/protocols/inference_v1/answer.ts";
import { join } from "../../runtime/protocols/parts.ts";

const FILE = "inference/v1/model_inference.proto";
const types = loadSync(new URL(`../../protos/${FILE}`, import.meta.url).pathname, {
  keepCase: true,
  longs: Number,
  defaults: true,
});
const typeOf = (name: string) => types[`inference.v1.${name}`] as MessageTypeDefinition<object, Message>;

interface Message {
  readonly [field: string]: unknown;
  readonly input_tensor: ArrayLike<number>;
}

const handle: RpcMethod["handle"] = async function* () {};
const service = createService(FILE, "inference.v1.ModelInference", {
  Predict: { handle, requestFloats: "input_tensor" },
  StreamPredict: { handle },
  BatchPredict: { handle },
  ChatStream: { handle },
});
const decode = service.methods.find(({ name }) => name === "Predict")!.decode as (bytes: Uint8Array) => Message;
const request = typeOf("PredictRequest");

// The same numbers in every run.
function createRandom(seed: number): (below: number) => number {
  return (below) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor(seed / 2 ** 32 * below);
  };
}

const floatBytes = (values: readonly number[]) => new Uint8Array(Float32Array.from(values).buffer);
const field = (number: number, wireType: number, ...content: Uint8Array[]) =>
  join([Uint8Array.of(number * 8 + wireType), ...content]);
const delimited = (number: number, content: Uint8Array) =>
  field(number, 2, Uint8Array.of(content.length % 128 + 128, Math.floor(content.length / 128)), content);
const text = (value: string) => new TextEncoder().encode(value);

// A well-formed PredictRequest in an order, with splits, repeats and unknown fields of chance.
function createMessage(seed: number): { readonly bytes: Uint8Array; readonly floats: readonly number[] } {
  const random = createRandom(seed);
  const floats: number[] = [];
  const fields: Uint8Array[] = [];
  const kinds: (() => Uint8Array)[] = [
    () => {
      const run = Array.from({ length: random(150) }, () => Math.fround((random(2000) - 1000) / 7));
      floats.push(...run);
      return delimited(2, floatBytes(run));
    },
    () => {
      const one = Math.fround(random(1000) / 3);
      floats.push(one);
      return field(2, 5, floatBytes([one]));
    },
    () => delimited(1, text(`model${random(10)}`)),
    () => delimited(3, join([delimited(1, text(`k${random(3)}`)), delimited(2, text("v".repeat(random(5))))])),
    () => field(4, 0, Uint8Array.of(random(128))),
    () => field(9, 0, Uint8Array.of(random(128))),
    () => field(10, 1, new Uint8Array(8)),
    () => field(11, 3, field(2, 5, floatBytes([99])), Uint8Array.of(11 * 8 + 4)), // a group with a field 2 of its own
    () => delimited(12, delimited(2, floatBytes([7]))),
  ];
  for (let i = 3 + random(12); i > 0; i--) fields.push(kinds[random(kinds.length)]!());
  if (random(4) > 0) fields.push(kinds[0]!(), delimited(12, new Uint8Array(1000)));
  return { bytes: join(fields), floats };
}

const plain = (message: Message) => ({ ...message, input_tensor: Array.from(message.input_tensor) });

Deno.test("codec: requests of any order, with split, repeated and unknown fields, decode as proto-loader decodes them", () => {
  let cut = 0;
  for (let seed = 1; seed <= 2000; seed++) {
    const { bytes, floats } = createMessage(seed);
    const got = decode(bytes);
    assertEquals(plain(got), plain(request.deserialize(bytes as never) as Message), `seed ${seed}`);
    assertEquals(Array.from(got.input_tensor), floats, `seed ${seed}`);
    if (got.input_tensor instanceof Float32Array) cut++;
  }
  assert(cut > 500 && cut < 2000, `${cut} of 2000 were viewed in place`);
});

Deno.test("codec: a request that is cut short at any byte is refused, or is a shorter well-formed one", () => {
  for (const seed of [2, 3, 5, 8]) {
    const { bytes } = createMessage(seed);
    let refused = 0;
    for (let length = 0; length < bytes.length; length++) {
      const part = bytes.slice(0, length);
      try {
        assertEquals(plain(decode(part)), plain(request.deserialize(part as never) as Message));
      } catch (error) {
        assert(error instanceof ModelError && error.code === "invalid_argument", `${error}`);
        refused++;
      }
    }
    assert(refused > bytes.length / 2, `${refused} of ${bytes.length}`);
  }
});

Deno.test("codec: a view is aligned, and not of bytes that other messages share", () => {
  for (let shift = 0; shift < 4; shift++) {
    const values = Array.from({ length: 4000 }, (_, i) => i);
    const message = join([delimited(1, text("m".repeat(1 + shift))), delimited(2, floatBytes(values))]);
    assertEquals(Array.from(decode(message).input_tensor), values);
  }
  const slab = new Uint8Array(8192);
  const small = join([delimited(1, text("m")), delimited(2, floatBytes(Array(300).fill(1)))]);
  slab.set(small, 100);
  const { input_tensor } = decode(slab.subarray(100, 100 + small.length));
  slab.fill(255);
  assertEquals(Array.from(input_tensor), Array(300).fill(1));
});

Deno.test("codec: thousands of single floats are left to proto-loader", () => {
  const message = join(Array.from({ length: 2000 }, (_, i) => field(2, 5, floatBytes([i]))));
  assertEquals(Array.from(decode(message).input_tensor), Array.from({ length: 2000 }, (_, i) => i));
});

Deno.test("codec: answers of any size decode as what they were, every bit of them", () => {
  const response = typeOf("PredictResponse");
  for (const length of [0, 1, 255, 256, 257, 10_000]) {
    const bits = Uint32Array.from({ length }, (_, i) => (i * 0x9e3779b1) >>> 0).fill(0x7f800000, 0, 1);
    const output = new Float32Array(bits.buffer).map((value) => Number.isNaN(value) ? -0 : value);
    const bytes = join(answerParts({ output, model_version: "3" }, (message) => response.serialize(message)));
    const { output_tensor, model_version } = response.deserialize(bytes as never);
    assertEquals([output_tensor, model_version], [Array.from(output), "3"]);
  }
});
