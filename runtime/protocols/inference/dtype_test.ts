import { assertEquals } from "tensorlet/assert";
import { assertFails } from "../../../test/harness/calls.ts";
import { DTYPES, ELEMENT_BYTES, isFixed } from "../../core/dtype.ts";
import { parseDType } from "./dtype.ts";

const parse = (sent: string) => {
  const { dtype, itemBytes, bigEndian } = parseDType(sent, "input 0");
  return `${dtype} ${itemBytes}${bigEndian ? " big" : ""}`;
};

Deno.test("parseDType() reads every fixed-size dtype by its name, in any case", () => {
  for (const dtype of DTYPES.filter(isFixed)) {
    assertEquals(parse(dtype), `${dtype} ${ELEMENT_BYTES[dtype]}`);
    assertEquals(parse(dtype.toUpperCase()), `${dtype} ${ELEMENT_BYTES[dtype]}`);
  }
  assertEquals(parse("Float32"), "float32 4");
});

Deno.test("parseDType() reads the array protocol's codes, with and without a byte order", () => {
  const codes = {
    b1: "bool",
    i1: "int8",
    i2: "int16",
    i4: "int32",
    i8: "int64",
    u1: "uint8",
    u2: "uint16",
    u4: "uint32",
    u8: "uint64",
    f2: "float16",
    f4: "float32",
    f8: "float64",
  } as const;
  for (const [code, dtype] of Object.entries(codes)) {
    const size = ELEMENT_BYTES[dtype];
    for (const order of ["", "<", "=", "|"]) assertEquals(parse(order + code), `${dtype} ${size}`);
    assertEquals(parse(`>${code}`), size === 1 ? `${dtype} 1` : `${dtype} ${size} big`);
  }
  assertEquals([parse("?"), parse("|?"), parse(">?")], ["bool 1", "bool 1", "bool 1"]);
});

Deno.test("parseDType() reads NumPy's other names", () => {
  const names = ["bool_", "half", "single", "double", "float", "int", "uint"];
  assertEquals(names.map(parse), [
    "bool 1",
    "float16 2",
    "float32 4",
    "float64 8",
    "float64 8",
    "int64 8",
    "uint64 8",
  ]);
});

Deno.test("parseDType() reads strings and bytes with their width", () => {
  assertEquals([parse("<U7"), parse("U1"), parse(">U12")], ["string 28", "string 4", "string 48 big"]);
  assertEquals([parse("|S5"), parse("S123")], ["bytes 5", "bytes 123"]);
});

Deno.test("parseDType() keeps the case of codes: U2 is text and u2 are integers", () => {
  assertEquals([parse("U2"), parse("u2")], ["string 8", "uint16 2"]);
});

Deno.test("parseDType() refuses other dtypes, naming what was sent and what is supported", async () => {
  const others = [
    ...["object", "O", "|O", "complex64", "c8", "<c16", "datetime64[ns]", "<M8[ns]", "V8", "[('a', '<f4')]"],
    ...["float128", "f16", "f1", "i3", "b2", "<U", "<U0", "|S0", "<U-1", "U1234567890", "s5", "F4"],
    ...["", " float32", "float32\n", "constructor", "__proto__", "toString", "string", "bytes", "any", ">>f4"],
  ];
  const wanted = "is not supported, wanted bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, " +
    'bfloat16, float32, float64, "<U.." (strings) or "|S.." (bytes)';
  for (const sent of others) {
    await assertFails("invalid_argument", `Cannot read input 0: dtype ${JSON.stringify(sent)} ${wanted}`, () => {
      parseDType(sent, "input 0");
    });
  }
});

Deno.test("parseDType() cuts what it repeats", async () => {
  await assertFails("invalid_argument", `dtype "${"x".repeat(100)}…"`, () => parseDType("x".repeat(1e6), "input 0"));
});
