// The requests that h2load sends, as files.
import { loadSync, type ServiceDefinition } from "@grpc/proto-loader";
import protobuf from "protobufjs";
import { ROOT } from "../../harness/server_process.ts";
import { PROTOS } from "./tools.ts";

const SIDE = 28;
const CLASS_SIZE = 20;

/** The digit that {@linkcode image} shows. */
export const DIGIT = 5;

/** One unseen image of a digit: 784 values in 0..1. */
export function image(): Float32Array {
  const bytes = Deno.readFileSync(`${ROOT}test/testdata/digits.u8`);
  const start = DIGIT * CLASS_SIZE * SIDE * SIDE;
  return Float32Array.from(bytes.subarray(start, start + SIDE * SIDE), (value) => value / 255);
}

// What of the Open Inference Protocol MLServer's request needs.
const OIP = `syntax = "proto3";
message ModelInferRequest {
  message InferInputTensor { string name = 1; string datatype = 2; repeated int64 shape = 3; }
  string model_name = 1;
  repeated InferInputTensor inputs = 5;
  repeated bytes raw_input_contents = 7;
}`;

/** What each request is, by name. */
const BODIES: Readonly<Record<string, () => Uint8Array>> = {
  small: () => v1("Predict", { model_id: "echo", input_tensor: [1, 2, 3] }),
  stream: () => v1("StreamPredict", { model_id: "counter", max_tokens: 100 }),
  digits: () => digitsRequest("digits"),
  digits_unbatched: () => digitsRequest("digits_unbatched"),
  digits_oip: () => {
    const type = protobuf.parse(OIP).root.lookupType("ModelInferRequest");
    const inputs = [{ name: "image", datatype: "FP32", shape: [1, 1, SIDE, SIDE] }];
    return framed(type.encode({ modelName: "digits", inputs, rawInputContents: [bytesOf(image())] }).finish());
  },
  digits_litserve: () => json({ image: [...image()] }),
  digits_bentoml: () => json({ images: [[rows(image())]] }),
  digits_mlserver: () =>
    json({ inputs: [{ name: "image", datatype: "FP32", shape: [1, 1, SIDE, SIDE], data: [...image()] }] }),
};

/** Writes a request into a folder, once, and gives the file. */
export function writeBody(folder: string, name: string): string {
  const file = `${folder}/${name}.body`;
  Deno.writeFileSync(file, BODIES[name]!());
  return file;
}

function v1(method: string, message: unknown): Uint8Array {
  const definition = loadSync(`${PROTOS}/inference/v1/model_inference.proto`, { keepCase: true });
  return serialize(definition["inference.v1.ModelInference"] as ServiceDefinition, method, message);
}

function digitsRequest(model_name: string): Uint8Array {
  const definition = loadSync(`${PROTOS}/inference.proto`, { keepCase: true });
  const inputs = [{ data: bytesOf(image()), shape: [1, 1, SIDE, SIDE], dtype: "float32" }];
  return serialize(definition["inference.InferenceService"] as ServiceDefinition, "Predict", { model_name, inputs });
}

function serialize(service: ServiceDefinition, method: string, message: unknown): Uint8Array {
  return framed(service[method]!.requestSerialize(message as object));
}

// gRPC's frame: not compressed, and the length.
function framed(message: Uint8Array): Uint8Array {
  const frame = new Uint8Array(5 + message.length);
  new DataView(frame.buffer).setUint32(1, message.length);
  frame.set(message, 5);
  return frame;
}

function json(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

function bytesOf(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

function rows(pixels: Float32Array): number[][] {
  return Array.from({ length: SIDE }, (_, row) => [...pixels.subarray(row * SIDE, (row + 1) * SIDE)]);
}
