import { assertEquals } from "tensorlet/assert";
import { createContextKey, NO_VALUES, valuesOf, withValue } from "./values.ts";

Deno.test("withValue() sets a key's value, others keep their defaults", () => {
  const user = createContextKey("user", "nobody");
  const depth = createContextKey("depth", 0);
  const values = withValue(withValue(NO_VALUES, user, "ann"), depth, 2);
  assertEquals([values.get(user), values.get(depth)], ["ann", 2]);
  assertEquals(withValue(values, user, "bob").get(user), "bob");
  assertEquals(NO_VALUES.get(user), "nobody");
});

Deno.test("createContextKey() makes the same key of the same name, in whatever realm, each with its own default", () => {
  const [a, b] = [createContextKey("same", 1), createContextKey("same", 2)];
  assertEquals(withValue(NO_VALUES, a, 5).get(b), 5);
  assertEquals([NO_VALUES.get(a), NO_VALUES.get(b)], [1, 2]);
});

Deno.test("ContextValues.entries() lists what is set, for valuesOf() to make them again", () => {
  const user = createContextKey("user", "nobody");
  const nothing = createContextKey<string | undefined>("nothing", "something");
  const values = withValue(withValue(NO_VALUES, user, "ann"), nothing, undefined);
  assertEquals([...values.entries()], [["user", "ann"], ["nothing", undefined]]);
  const again = valuesOf(new Map(values.entries()));
  assertEquals([again.get(user), again.get(nothing)], ["ann", undefined]);
  assertEquals([...NO_VALUES.entries()], []);
});
