// inference.v1.PredictResponse, whose floats are many.
import { bytesOf } from "../../core/tensor.ts";
import { MIN_LARGE_BYTES, withField } from "../parts.ts";

/** One answer of a function. */
export interface PredictAnswer {
  readonly output: Float32Array;
  readonly model_version: string;
  readonly latency_ms?: number;
}

/** `PredictResponse.output_tensor`. */
const OUTPUT_TENSOR = 1;

/** The parts of a `PredictResponse`; `encode` is the message type's own encoder. */
export function answerParts(
  { output, ...rest }: PredictAnswer,
  encode: (message: object) => Uint8Array,
): readonly Uint8Array[] {
  if (output.byteLength < MIN_LARGE_BYTES) return [encode({ ...rest, output_tensor: Array.from(output) })];
  return withField([encode(rest)], OUTPUT_TENSOR, [bytesOf(output)]);
}
