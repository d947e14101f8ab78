// Tensors as text: always JSON, with dtypes and exact values still to be told from it.
import { type AnyTensor, fromBfloat16, toBfloat16 } from "../core/tensor.ts";
import { quoteJson } from "./json.ts";

/** From so many elements on a tensor is shown in part, as NumPy does. */
const SUMMARY_ELEMENTS = 1000;
/** What is then shown of each dim, at either end. */
const EDGE = 3;

/** How {@linkcode formatTensor} writes. */
export interface FormatOptions {
  /** Without spaces, on one line, or with a line for each row of a matrix. @default {"compact"} */
  readonly layout?: "compact" | "line" | "lines";
  /** Large tensors in part, which is no JSON. @default {false} */
  readonly summary?: boolean;
}

/**
 * The values as nested arrays. Floats have a point or an exponent, and few digits; integers are exact;
 * what is not finite is `"NaN"`, `"Infinity"` or `"-Infinity"`; bytes are in base64.
 */
export function formatTensor(tensor: AnyTensor, options: FormatOptions = {}): string {
  const { shape, data } = tensor;
  const { layout = "compact" } = options;
  const elements = elementTexts(tensor);
  const cut = options.summary === true && data.length > SUMMARY_ELEMENTS;
  const write = (axis: number, start: number): string => {
    const dim = shape[axis];
    if (dim === undefined) return elements(start);
    const step = shape.slice(axis + 1).reduce((product, other) => product * other, 1);
    const parts: string[] = [];
    for (let i = 0; i < dim; i++) {
      const isHidden = cut && dim > 2 * EDGE && i >= EDGE && i < dim - EDGE;
      if (isHidden && i === EDGE) parts.push("...");
      if (!isHidden) parts.push(write(axis + 1, start + i * step));
    }
    const isRow = axis === shape.length - 1;
    const separator = layout === "compact" ? "," : isRow || layout === "line" ? ", " : `,\n${" ".repeat(axis + 1)}`;
    return `[${parts.join(separator)}]`;
  };
  return write(0, 0);
}

/**
 * One document: `{"outputs": [{"dtype", "shape", "data"}], "latency_ms", "request_id"}`, the data flat; each output can
 * be sent as it is.
 */
export function formatDocument(
  { outputs, latencyMs, requestId }: {
    readonly outputs: readonly AnyTensor[];
    readonly latencyMs: number;
    readonly requestId: string;
  },
): string {
  const tensors = outputs.map((tensor) => {
    const data = formatTensor({ ...tensor, shape: [tensor.data.length] });
    return `{"dtype":"${tensor.dtype}","shape":[${tensor.shape}],"data":${data}}`;
  });
  return `{"outputs":[${tensors.join(",")}],"latency_ms":${latencyMs},"request_id":${quoteJson(requestId)}}`;
}

/** The values of one tensor, or of several in an object. */
export function formatOutputs(outputs: readonly AnyTensor[], options: FormatOptions): string {
  if (outputs.length === 1) return formatTensor(outputs[0]!, options);
  const tensors = outputs.map((tensor, i) =>
    `${quoteJson(`${i}`)}: ${formatTensor(tensor, { ...options, layout: "line" })}`
  );
  return `{${tensors.join(options.layout === "lines" ? ",\n " : ", ")}}`;
}

function elementTexts(tensor: AnyTensor): (index: number) => string {
  const { dtype, data } = tensor;
  switch (dtype) {
    case "bool":
      return (i) => data[i] === 0 ? "false" : "true";
    case "string":
      return (i) => quoteJson(data[i]!);
    case "bytes":
      return (i) => `"${data[i]!.toBase64()}"`;
    case "float64":
      return (i) => floatText(data[i]!);
    case "float32":
      return (i) => floatText(shortest(data[i]!, Math.fround, 6));
    case "float16":
      return (i) => floatText(shortest(data[i]!, Math.f16round, 3));
    case "bfloat16":
      return (i) => floatText(shortest(fromBfloat16(data[i]!), (value) => fromBfloat16(toBfloat16(value)), 2));
    default:
      return (i) => `${data[i]}`;
  }
}

/**
 * A number with few digits that is `value` again when it is rounded. Start with as many digits as any number may have
 * that survives.
 */
function shortest(value: number, round: (value: number) => number, digits: number): number {
  if (!Number.isFinite(value) || value === 0) return value;
  let near;
  do {
    near = Number(value.toPrecision(digits++));
  } while (round(near) !== value);
  return near;
}

function floatText(value: number): string {
  if (!Number.isFinite(value)) return `"${value}"`;
  const text = Object.is(value, -0) ? "-0" : `${value}`;
  return /[.e]/.test(text) ? text : `${text}.0`;
}
