// NumPy's names for dtypes, both ways.
import { type DType, DTYPES, ELEMENT_BYTES, type FixedDType, isFixed } from "../../core/dtype.ts";
import { ModelError, quote } from "../../core/error.ts";

/** A dtype as NumPy writes it. */
export interface NumpyDType {
  readonly dtype: DType;
  /** Bytes an element takes on the wire: for strings 4 a character. */
  readonly itemBytes: number;
  readonly bigEndian: boolean;
}

// The array protocol's kinds and sizes, and the C names that np.dtype() takes. Kinds keep their case: "u2" are
// integers, "U2" is text.
const CODES: ReadonlyMap<string, FixedDType> = new Map([
  ["b1", "bool"],
  ["i1", "int8"],
  ["i2", "int16"],
  ["i4", "int32"],
  ["i8", "int64"],
  ["u1", "uint8"],
  ["u2", "uint16"],
  ["u4", "uint32"],
  ["u8", "uint64"],
  ["f2", "float16"],
  ["f4", "float32"],
  ["f8", "float64"],
]);
const NAMES: ReadonlyMap<string, FixedDType> = new Map([
  ...DTYPES.filter(isFixed).map((dtype) => [dtype, dtype] as const),
  ["?", "bool"],
  ["bool_", "bool"],
  ["half", "float16"],
  ["single", "float32"],
  ["double", "float64"],
  ["float", "float64"],
  ["int", "int64"],
  ["uint", "uint64"],
]);

/** Reads a dtype; throws `invalid_argument` naming it as it was sent. */
export function parseDType(sent: string, label: string): NumpyDType {
  const named = NAMES.get(sent.toLowerCase());
  if (named) return { dtype: named, itemBytes: ELEMENT_BYTES[named], bigEndian: false };
  const code = /^([<>=|]?)([biuf][1248]|\?)$/.exec(sent);
  const coded = code && (CODES.get(code[2]!) ?? NAMES.get(code[2]!));
  if (coded) {
    const itemBytes = ELEMENT_BYTES[coded];
    return { dtype: coded, itemBytes, bigEndian: code[1] === ">" && itemBytes > 1 };
  }
  const text = /^([<>=|]?)([US])(\d{1,9})$/.exec(sent);
  const length = Number(text?.[3] ?? 0);
  if (text && length > 0) {
    const isText = text[2] === "U";
    return { dtype: isText ? "string" : "bytes", itemBytes: isText ? 4 * length : length, bigEndian: text[1] === ">" };
  }
  const supported = DTYPES.filter(isFixed).join(", ");
  throw new ModelError(
    "invalid_argument",
    `Cannot read ${label}: dtype ${
      quote(sent)
    } is not supported, wanted ${supported}, "<U.." (strings) or "|S.." (bytes)`,
  );
}
