// The fixture `echo` behind JSON over HTTP, as one serves a function without gRPC: POST /predict with
// {"inputs": [{"dtype": "float32", "shape": [...], "data": [...]}]}. The handler and its checks are the same.
import { tensor } from "tensorlet";
import { testModel } from "tensorlet/testing";
import echo from "../testdata/functions/echo.ts";

interface JsonTensor {
  readonly dtype: "float32";
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

const model = await testModel(echo);

Deno.serve(
  { hostname: "127.0.0.1", port: 0, onListen: ({ port }) => console.log(`JSON on http://127.0.0.1:${port}`) },
  async (request) => {
    const { inputs } = await request.json() as { readonly inputs: readonly JsonTensor[] };
    const outputs = await model.predict(inputs.map(({ dtype, shape, data }) => tensor(dtype, data, shape)));
    return Response.json({
      outputs: outputs.map(({ dtype, shape, data }) => ({ dtype, shape, data: Array.from(data as Float32Array) })),
    });
  },
);
