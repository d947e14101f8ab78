// Calls `scale` on a running server, and fails where the answer is wrong.
import assert from "node:assert/strict";
import { createClient } from "tensorlet/client";
import scale from "./functions/scale.ts";

const [address = "127.0.0.1:50051"] = Deno.args;
// The definition types the call, and gives a bare array its dtype and shape.
await using client = createClient(address, { model: "scale", definition: scale });

const { output, latencyMs } = await client.predict(Float32Array.of(1, 2, 3, 4, 5, 6), { params: { factor: 10 } });
assert.deepEqual(output.shape, [2, 3]);
assert.deepEqual([...output.data], [10, 20, 30, 40, 50, 60]);
console.log(`scale: [${output.data}] in ${latencyMs} ms`);
