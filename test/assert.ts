// What tests assert with: jsr:@std/assert, or a stand-in where JSR cannot be reached.
type Assert = typeof import("./assert_stand_in.ts");

const chosen = await import("@std/assert").catch(() => {
  console.warn("@std/assert cannot be reached: a stand-in over node:assert is used");
  return import("./assert_stand_in.ts");
}) as unknown as Assert;

export const assert: Assert["assert"] = chosen.assert;
export const assertFalse: Assert["assertFalse"] = chosen.assertFalse;
export const assertEquals: Assert["assertEquals"] = chosen.assertEquals;
export const assertNotEquals: Assert["assertNotEquals"] = chosen.assertNotEquals;
export const assertStrictEquals: Assert["assertStrictEquals"] = chosen.assertStrictEquals;
export const assertExists: Assert["assertExists"] = chosen.assertExists;
export const assertInstanceOf: Assert["assertInstanceOf"] = chosen.assertInstanceOf;
export const assertStringIncludes: Assert["assertStringIncludes"] = chosen.assertStringIncludes;
export const assertMatch: Assert["assertMatch"] = chosen.assertMatch;
export const assertGreater: Assert["assertGreater"] = chosen.assertGreater;
export const assertLess: Assert["assertLess"] = chosen.assertLess;
export const assertAlmostEquals: Assert["assertAlmostEquals"] = chosen.assertAlmostEquals;
export const assertThrows: Assert["assertThrows"] = chosen.assertThrows;
export const assertRejects: Assert["assertRejects"] = chosen.assertRejects;
export const fail: Assert["fail"] = chosen.fail;
