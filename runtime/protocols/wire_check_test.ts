import { assertEquals, assertThrows } from "tensorlet/assert";
import { checkWire, WireError, type WireField, type WireMessage } from "./wire_check.ts";

const plain = { repeated: false, packable: false, text: false, message: undefined };
const INNER: WireMessage = {
  name: "Inner",
  fields: new Map<number, WireField>([
    [1, { ...plain, name: "text", wireType: 2, text: true }],
    [2, { ...plain, name: "flag", wireType: 0 }],
  ]),
};
const OUTER: WireMessage = {
  name: "Outer",
  fields: new Map<number, WireField>([
    [1, { ...plain, name: "id", wireType: 2, text: true }],
    [2, { ...plain, name: "floats", wireType: 5, repeated: true, packable: true }],
    [3, { ...plain, name: "ints", wireType: 0, repeated: true, packable: true }],
    [4, { ...plain, name: "inner", wireType: 2, repeated: true, message: INNER }],
    [5, { ...plain, name: "data", wireType: 2 }],
    [6, { ...plain, name: "double", wireType: 1 }],
    [7, {
      ...plain,
      name: "self",
      wireType: 2,
      get message() {
        return OUTER;
      },
    }],
    [8, { ...plain, name: "doubles", wireType: 1, repeated: true, packable: true }],
  ]),
};

const tag = (field: number, wireType: number) => field * 8 + wireType;
const bytes = (field: number, ...content: readonly number[]) => [tag(field, 2), content.length, ...content];
const text = (field: number, value: string) => bytes(field, ...new TextEncoder().encode(value));
const check = (...message: readonly number[]) => checkWire(Uint8Array.from(message), OUTER);
const refuses = (why: string, ...message: readonly number[]) => assertThrows(() => check(...message), WireError, why);

const VALID = [
  ...text(1, "é😀"),
  ...bytes(2, 0, 0, 128, 63, 1, 2, 3, 4), // packed
  ...[tag(2, 5), 1, 2, 3, 4], // one by one
  ...bytes(3, 128, 1, 5),
  ...[tag(3, 0), 128, 1],
  ...bytes(4, ...text(1, "in"), tag(2, 0), 1),
  ...bytes(5, 255, 254),
  ...[tag(6, 1), 1, 2, 3, 4, 5, 6, 7, 8],
];

Deno.test("checkWire() accepts a valid message, an empty one, and fields in any order and number", () => {
  check(...VALID);
  check();
  check(...VALID, ...VALID);
  check(...bytes(2), ...bytes(3), ...bytes(4), ...text(1, "")); // all empty
});

Deno.test("checkWire() skips unknown fields of every wire type", () => {
  check(tag(15, 0), 1, tag(15, 1), 1, 2, 3, 4, 5, 6, 7, 8, ...bytes(15, 255, 255), tag(15, 5), 1, 2, 3, 4);
  check(tag(15, 3), tag(1, 0), 5, ...bytes(2, 9), tag(14, 3), tag(14, 4), tag(15, 4), ...text(1, "a"));
});

Deno.test("checkWire() refuses a valid message cut at any byte but the ends of its fields", () => {
  const ends = new Set([0]);
  for (let at = 0; at < VALID.length;) {
    const wireType = VALID[at]! % 8;
    at += wireType === 2 ? 2 + VALID[at + 1]! : wireType === 5 ? 5 : wireType === 1 ? 9 : 3;
    ends.add(at);
  }
  assertEquals(ends.size, 9);
  for (let length = 0; length <= VALID.length; length++) {
    const cut = VALID.slice(0, length);
    if (ends.has(length)) check(...cut);
    else refuses("cut short", ...cut);
  }
});

Deno.test("checkWire() says which field is cut short", () => {
  refuses('field "id" (1) of 5 bytes is cut short by the end of its message', tag(1, 2), 5, 97);
  refuses('field "double" (6) is cut short', tag(6, 1), 1);
  refuses("field 15 of 2 bytes is cut short", tag(15, 2), 2, 0);
  refuses("field 15 of 9007199254740991 bytes is cut short", tag(15, 2), 255, 255, 255, 255, 255, 255, 255, 15);
});

Deno.test("checkWire() refuses a nested message that runs into its neighbour", () => {
  // The inner text takes 5 bytes, of which 2 are the inner message's.
  refuses('field "text" (1) of 5 bytes is cut short', tag(4, 2), 4, tag(1, 2), 5, 97, 98, ...text(1, "neighbour"));
  refuses("a number is cut short", tag(4, 2), 2, tag(2, 0), 128, 1);
  refuses("field 9 is cut short", tag(4, 2), 3, tag(9, 5), 1, 2, ...text(1, "neighbour"));
});

Deno.test("checkWire() refuses a known field of another wire type", () => {
  refuses('field "id" (1) has wire type 0, wanted 2', tag(1, 0), 1);
  refuses('field "double" (6) has wire type 5, wanted 1', tag(6, 5), 1, 2, 3, 4);
  refuses('field "double" (6) has wire type 2, wanted 1', ...bytes(6));
  refuses('field "floats" (2) has wire type 0, wanted 5', tag(2, 0), 1);
  refuses('field "id" (1) has wire type 3, wanted 2', tag(1, 3), tag(1, 4));
  refuses('field "flag" (2) has wire type 2, wanted 0', ...bytes(4, ...bytes(2)));
});

Deno.test("checkWire() refuses wire types and field numbers that there are not", () => {
  refuses("field 15 has wire type 6", tag(15, 6));
  refuses("field 15 has wire type 7", tag(15, 7));
  refuses("field 15 has wire type 4", tag(15, 4));
  refuses("there is no field number 0", 0, 1);
  refuses("there is no field number 536870912", 128, 128, 128, 128, 16, 1);
  check(248, 255, 255, 255, 15, 1); // 536870911, the greatest
});

Deno.test("checkWire() refuses text that is not UTF-8, and takes bytes as they are", () => {
  for (const bad of [[255], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [97, 0x80]]) {
    refuses('field "id" (1) is not valid UTF-8', ...bytes(1, ...bad));
    refuses('field "text" (1) is not valid UTF-8', ...bytes(4, ...bytes(1, ...bad)));
    check(...bytes(5, ...bad));
    check(...bytes(15, ...bad));
  }
  check(...text(1, "\u0000\ufeff\uffff"));
});

Deno.test("checkWire() accepts numbers of ten bytes and refuses longer ones", () => {
  const ten = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
  check(tag(3, 0), ...ten);
  check(tag(3, 0), 128, 128, 128, 128, 128, 128, 128, 128, 128, 0); // a long-winded 0
  refuses("a number is longer than 10 bytes", tag(3, 0), ...ten.with(9, 255), 1);
  refuses("a number is longer than 10 bytes", ...Array(20).fill(128));
});

Deno.test("checkWire() wants whole elements in a packed field", () => {
  refuses('field "floats" (2) ends within an element', ...bytes(2, 1, 2, 3));
  refuses('field "floats" (2) ends within an element', ...bytes(2, 1, 2, 3, 4, 5));
  refuses('field "doubles" (8) ends within an element', ...bytes(8, 1, 2, 3, 4));
  refuses('field "ints" (3) ends within an element', ...bytes(3, 1, 128));
  check(...bytes(8, 1, 2, 3, 4, 5, 6, 7, 8), tag(8, 1), 1, 2, 3, 4, 5, 6, 7, 8);
});

Deno.test("checkWire() wants groups to end, as themselves, within their message", () => {
  refuses("group 15 has no end", tag(15, 3), tag(1, 0), 1);
  refuses("group 15 ends as group 14", tag(15, 3), tag(14, 4));
  refuses("field 1 is cut short", tag(15, 3), tag(1, 2), 9, 0, tag(15, 4));
  refuses("field 1 is cut short", tag(15, 3), tag(1, 5), 0, 0);
  refuses("a number is cut short", tag(15, 3), tag(1, 0), 128);
  refuses("group 15 has no end", ...bytes(4, tag(15, 3)), tag(15, 4));
});

Deno.test("checkWire() bounds how deep messages and groups are nested", () => {
  const nest = (depth: number) => {
    let message: number[] = [];
    for (let i = 0; i < depth; i++) {
      const length = message.length < 128 ? [message.length] : [128 + message.length % 128, message.length >> 7];
      message = [tag(7, 2), ...length, ...message];
    }
    return message;
  };
  check(...nest(100));
  refuses("messages are nested more than 100 deep", ...nest(101));
  const groups = (depth: number) => [...Array(depth).fill(tag(15, 3)), ...Array(depth).fill(tag(15, 4))];
  check(...groups(100));
  refuses("groups are nested more than 100 deep", ...groups(101));
  refuses("groups are nested more than 100 deep", ...groups(1000));
});

Deno.test("checkWire() answers random bytes with nothing but a WireError", () => {
  let seed = 1;
  const random = () => (seed = (seed * 48_271) % 2_147_483_647) % 256;
  for (let i = 0; i < 5000; i++) {
    const message = Uint8Array.from({ length: random() % 40 }, random);
    try {
      checkWire(message, OUTER);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
    }
  }
});

Deno.test("checkWire() bounds repeated messages and numbers: each takes many times its size in memory", () => {
  const many = (count: number, ...field: readonly number[]) => Array.from({ length: count }, () => field).flat();
  check(...many(10_000, tag(4, 2), 0));
  refuses('field "inner" (4) makes more than 10000 repeated elements', ...many(10_001, tag(4, 2), 0));
  refuses('field "ints" (3) makes more than 10000 repeated numbers', ...many(10_001, tag(3, 0), 1));
  refuses('field "ints" (3) makes more than 10000 repeated numbers', ...many(101, tag(3, 2), 100, ...many(100, 1)));
  check(...many(20_000, tag(2, 5), 0, 0, 0, 0)); // a tensor's values, one by one
});

Deno.test("checkWire() does not count the elements of a type that makes no objects of them", () => {
  const many = (count: number, ...field: readonly number[]) => Array.from({ length: count }, () => field).flat();
  const inner = many(10_001, tag(2, 0), 1);
  const COUNTED: WireMessage = {
    name: "Counted",
    fields: new Map([[2, { ...plain, name: "flags", wireType: 0, repeated: true, packable: true }]]),
  };
  const outer: WireMessage = {
    name: "Outer",
    fields: new Map([[4, { ...plain, name: "inner", wireType: 2, repeated: true, message: COUNTED }]]),
  };
  const length = [inner.length % 128 + 128, Math.floor(inner.length / 128) % 128 + 128, inner.length >> 14];
  const message = Uint8Array.from([tag(4, 2), ...length, ...inner]);
  assertThrows(() => checkWire(message, outer), WireError, "more than 10000 repeated numbers");
  checkWire(message, outer, { uncounted: COUNTED });
  const crowd = Uint8Array.from(many(10_001, tag(4, 2), 0));
  assertThrows(() => checkWire(crowd, outer, { uncounted: COUNTED }), WireError, "more than 10000 repeated elements");
});
