// The protocol's names for dtypes, both ways.
import { type DType, ELEMENT_BYTES, type FixedDType } from "../../core/dtype.ts";
import { ModelError, quote } from "../../core/error.ts";

const FIXED: Readonly<Record<FixedDType, string>> = {
  bool: "BOOL",
  int8: "INT8",
  int16: "INT16",
  int32: "INT32",
  int64: "INT64",
  uint8: "UINT8",
  uint16: "UINT16",
  uint32: "UINT32",
  uint64: "UINT64",
  float16: "FP16",
  bfloat16: "BF16",
  float32: "FP32",
  float64: "FP64",
};
const DTYPES = new Map(Object.entries(FIXED).map(([dtype, name]) => [name, dtype as FixedDType]));

/** The datatype of a dtype; "ANY", which no tensor has, where a function takes any. */
export function datatypeOf(dtype: DType | "any"): string {
  if (dtype === "any") return "ANY";
  return dtype in ELEMENT_BYTES ? FIXED[dtype as FixedDType] : "BYTES";
}

/** The dtype of a datatype: BYTES are texts unless the function declares `wanted` as bytes. */
export function parseDatatype(sent: string, wanted: DType | "any" | undefined, label: string): DType {
  const dtype = sent === "BYTES" ? (wanted === "bytes" ? "bytes" : "string") : DTYPES.get(sent);
  if (dtype === undefined) {
    const known = [...DTYPES.keys(), "BYTES"].join(", ");
    throw new ModelError("invalid_argument", `Cannot read ${label}: datatype ${quote(sent)} is none of ${known}`);
  }
  if (wanted !== undefined && wanted !== "any" && dtype !== wanted) {
    throw new ModelError(
      "invalid_argument",
      `Cannot accept ${label}: got datatype ${quote(sent)}, wanted "${datatypeOf(wanted)}"`,
    );
  }
  return dtype;
}

// Triton's enum DataType of model configurations.
const CONFIG_TYPES = [
  ...["INVALID", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64"],
  ...["FP16", "FP32", "FP64", "STRING", "BF16"],
];

/** The number that stands for a datatype in a model configuration; 0 for "ANY". */
export function configTypeOf(datatype: string): number {
  return Math.max(0, CONFIG_TYPES.indexOf(datatype === "BYTES" ? "STRING" : datatype));
}

/** The name of that number. */
export function configTypeName(datatype: string): string {
  return `TYPE_${CONFIG_TYPES[configTypeOf(datatype)]}`;
}
