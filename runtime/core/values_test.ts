import { assertEquals } from "tensorlet/assert";
import { createContextKey, NO_VALUES, withValue } from "./values.ts";

Deno.test("withValue() sets a key's value, others keep their defaults", () => {
  const user = createContextKey("user", "nobody");
  const depth = createContextKey("depth", 0);
  const values = withValue(withValue(NO_VALUES, user, "ann"), depth, 2);
  assertEquals([values.get(user), values.get(depth)], ["ann", 2]);
  assertEquals(withValue(values, user, "bob").get(user), "bob");
  assertEquals(NO_VALUES.get(user), "nobody");
});

Deno.test("createContextKey() makes keys that differ although their descriptions do not", () => {
  const [a, b] = [createContextKey("same", 1), createContextKey("same", 2)];
  assertEquals(withValue(NO_VALUES, a, 5).get(b), 2);
});
