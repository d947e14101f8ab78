import { assertEquals, assertThrows } from "tensorlet/assert";
import { ModelError } from "../core/error.ts";
import { type AnyTensor, tensor } from "../core/tensor.ts";
import { isNpy, readNpy, writeNpy } from "./npy.ts";

/** A file with a header as NumPy writes it. */
function npy(
  descr: string,
  shape: string,
  data: Iterable<number>,
  { fortran = false, version = 1 }: { readonly fortran?: boolean; readonly version?: number } = {},
): Uint8Array {
  const fields = `{'descr': ${descr}, 'fortran_order': ${fortran ? "True" : "False"}, 'shape': ${shape}, }\n`;
  const header = new TextEncoder().encode(fields);
  const length = version === 1 ? [header.length, 0] : [header.length, 0, 0, 0];
  const magic = [0x93, ...new TextEncoder().encode("NUMPY"), version, 0];
  return Uint8Array.from([...magic, ...length, ...header, ...data]);
}

const SAMPLES: readonly AnyTensor[] = [
  tensor("bool", Uint8Array.of(1, 0)),
  tensor("int8", [-1, 2]),
  tensor("int16", [-300, 2]),
  tensor("int32", [-70_000, 2]),
  tensor("int64", [-(2n ** 62n) - 1n, 2n]),
  tensor("uint8", [255, 2]),
  tensor("uint16", [65_535, 2]),
  tensor("uint32", [2 ** 32 - 1, 2]),
  tensor("uint64", [2n ** 64n - 1n, 2n]),
  tensor("float16", [0.5, -2]),
  tensor("bfloat16", Uint16Array.of(0x3f80, 1)),
  tensor("float32", [0.1, NaN]),
  tensor("float64", [0.1, -Infinity]),
  tensor("string", ["héllo 😀", ""]),
  tensor("bytes", [Uint8Array.of(0, 1), Uint8Array.of(2)]),
  tensor("float32", [1, 2, 3, 4, 5, 6], [1, 2, 3]),
  tensor("float32", [], [0, 3]),
  tensor("int64", [7n], []),
];

for (const sample of SAMPLES) {
  Deno.test(`writeNpy(), readNpy(): ${sample.dtype} [${sample.shape}]`, () => {
    const bytes = writeNpy(sample);
    assertEquals(isNpy(bytes), true);
    assertEquals(readNpy(bytes, "x"), sample);
  });
}

Deno.test("writeNpy() begins the elements at a multiple of 64 bytes", () => {
  for (let rank = 0; rank < 64; rank++) {
    const bytes = writeNpy(tensor("uint8", [1], Array.from({ length: rank }, () => 1)));
    assertEquals([bytes.length % 64, bytes[bytes.length - 2]], [1, 0x0a]);
  }
});

Deno.test("readNpy() reads every version, either byte order and either order of elements", () => {
  for (const version of [1, 2, 3]) {
    const file = npy("'>i2'", "(2, 3)", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6], { fortran: true, version });
    assertEquals(readNpy(file, "x"), tensor("int16", [1, 3, 5, 2, 4, 6], [2, 3]));
  }
  const cube = npy("'|u1'", "(2, 3, 2)", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], { fortran: true });
  assertEquals([...readNpy(cube, "x").data], [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11]);
  assertEquals(readNpy(npy("'|u1'", "(0, 3)", [], { fortran: true }), "x").shape, [0, 3]);
  assertEquals(readNpy(npy("'<u4'", "(2L,)", [1, 0, 0, 0, 2, 0, 0, 0]), "x"), tensor("uint32", [1, 2]));
  assertEquals(readNpy(npy("'|b1'", "()", [1]), "x"), tensor("bool", Uint8Array.of(1), []));
});

for (
  const [what, file, text] of [
    ["no .npy file", new TextEncoder().encode("PK"), "does not begin like a .npy file"],
    ["another version", npy("'<f4'", "(1,)", [], { version: 4 }), "format version is 4, wanted 1 to 3"],
    ["a cut header", npy("'<f4'", "(1,)", []).subarray(0, 40), "ends in its header"],
    ["a cut length", npy("'<f4'", "(1,)", []).subarray(0, 9), "ends in its header"],
    ["objects", npy("'|O'", "(1,)", [1, 2, 3]), "holds Python objects"],
    ["fields", npy("[('a', '<f4')]", "(1,)", [1, 2, 3, 4]), "structured"],
    ["complex numbers", npy("'<c8'", "(1,)", [1, 2, 3, 4, 5, 6, 7, 8]), '"<c8" is not supported'],
    ["times", npy("'<M8[ns]'", "(1,)", [1, 2, 3, 4, 5, 6, 7, 8]), '"<M8[ns]" is not supported'],
    ["cut elements", npy("'<f4'", "(2,)", [1, 2, 3, 4]), 'of "<f4" takes 8 bytes, got 4'],
    ["cut elements in the other order", npy("'<f4'", "(2,)", [1], { fortran: true }), "takes 8 bytes, got 1"],
    ["two arrays", npy("'|u1'", "(1,)", [1, 2]), "takes 1 bytes, got 2"],
    ["more elements than can be counted", npy("'|u1'", "(99999999, 99999999, 99999999)", [1]), "got 1"],
    ["another header", npy("'<f4'", "3", []), "its header is"],
  ] as const
) {
  Deno.test(`readNpy() refuses ${what}`, () => {
    const error = assertThrows(() => readNpy(file, "x.npy"), ModelError, text);
    assertEquals([error.code, error.message.startsWith("Cannot read x.npy: ")], ["invalid_argument", true]);
  });
}
