import { type AnyTensor, ModelError, tensor } from "tensorlet";
import { assertEquals, assertRejects } from "tensorlet/assert";
import { testModel } from "tensorlet/testing";
import affine from "./affine.ts";

// testModel() runs the function as the server does, without a server: no network, no permissions.
async function predict(x: AnyTensor): Promise<AnyTensor> {
  await using model = await testModel(affine);
  const [y] = await model.predict(x);
  return y!;
}

Deno.test("affine doubles and adds ten", async () => {
  const x = tensor("float32", [0, 1, -2.5, 100], [2, 2]);
  assertEquals(await predict(x), tensor("float32", [10, 12, 5, 210], [2, 2]));
});

Deno.test("affine keeps 64-bit integers exact", async () => {
  const x = tensor("int64", [2n ** 53n + 1n]); // no float64 can hold it
  assertEquals(await predict(x), tensor("int64", [2n ** 54n + 12n]));
});

Deno.test("affine refuses a tensor that is not numeric", async () => {
  await assertRejects(() => predict(tensor("string", ["three"])), ModelError, "a numeric dtype is wanted");
});
