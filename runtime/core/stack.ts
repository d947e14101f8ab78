// Requests joined along their first dim, and answers cut apart along it.
import type { PredictCall } from "./call.ts";
import { ARRAY_TYPES, isFixed } from "./dtype.ts";
import type { NamedSpec } from "./spec.ts";
import type { AnyTensor, NamedTensors, Shape } from "./tensor.ts";

/** Whether every tensor has a first dim of any size, so that several requests can be one. */
export function hasBatchDim(specs: readonly NamedSpec[] | undefined): boolean {
  return specs !== undefined && specs.length > 0 &&
    specs.every(({ shape, optional }) => shape?.[0] === -1 && !optional);
}

/** What requests must have in common to be stacked: names, dtypes, all dims but the first, and params. */
export function stackKey({ input, params }: Pick<PredictCall, "input" | "params">): string {
  const tensors = Object.entries(input).map(([name, { dtype, shape }]) => [name, dtype, shape.slice(1)]);
  return JSON.stringify([tensors, params]);
}

/** The rows of a request: the first dim of its tensors, where all have the same. */
export function rowsOf(input: NamedTensors): number | undefined {
  const [first, ...others] = Object.values(input).map(({ shape }) => shape[0]);
  return others.every((rows) => rows === first) ? first : undefined;
}

/** Requests of one {@linkcode stackKey} as one, row behind row. */
export function stack(inputs: readonly NamedTensors[]): NamedTensors {
  return Object.fromEntries(
    Object.keys(inputs[0]!).map((name) => [name, stackTensors(inputs.map((input) => input[name]!))]),
  );
}

function stackTensors(tensors: readonly AnyTensor[]): AnyTensor {
  const [{ dtype, shape }] = tensors as readonly [AnyTensor];
  const rows = tensors.reduce((sum, each) => sum + each.shape[0]!, 0);
  return { dtype, shape: [rows, ...shape.slice(1)], data: join(tensors) } as unknown as AnyTensor;
}

function join(tensors: readonly AnyTensor[]): AnyTensor["data"] {
  const [{ dtype }] = tensors as readonly [AnyTensor];
  if (!isFixed(dtype)) return tensors.flatMap(({ data }) => [...data as readonly string[]]);
  const joined = new ARRAY_TYPES[dtype](tensors.reduce((sum, { data }) => sum + data.length, 0));
  let at = 0;
  for (const { data } of tensors) {
    joined.set(data as never, at);
    at += data.length;
  }
  return joined;
}

/** The answer to stacked requests of so many rows each, cut apart; undefined where its rows are not theirs. */
export function split(output: NamedTensors, rows: readonly number[]): readonly NamedTensors[] | undefined {
  const total = rows.reduce((sum, each) => sum + each, 0);
  if (Object.values(output).some(({ shape }) => shape[0] !== total)) return undefined;
  let start = 0;
  return rows.map((count) => {
    const part = Object.entries(output).map(([name, whole]) => [name, sliceRows(whole, start, count)] as const);
    start += count;
    return Object.fromEntries(part);
  });
}

function sliceRows({ dtype, shape, data }: AnyTensor, start: number, count: number): AnyTensor {
  const width = shape.slice(1).reduce((product, dim) => product * dim, 1);
  const rows = data.slice(start * width, (start + count) * width);
  return { dtype, shape: [count, ...shape.slice(1)] satisfies Shape, data: rows } as unknown as AnyTensor;
}
