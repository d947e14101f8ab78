import { assertEquals } from "tensorlet/assert";
import { testModel } from "tensorlet/testing";
import scale from "./scale.ts";

Deno.test("scale multiplies by its factor", async () => {
  await using model = await testModel(scale);
  const y = await model.predict(Float32Array.of(1, 2, 3), { params: { factor: 10 } });
  assertEquals([...y.data], [10, 20, 30]);
});
