// Memory that is used again, or given back at once, never shows one caller what is another's.
import { Buffer } from "node:buffer";
import http2 from "node:http2";
import { defineModel } from "tensorlet";
import { assert, assertEquals } from "tensorlet/assert";
import { patchHttp2Close } from "../../runtime/transports/grpc/http2_patch.ts";
import { answer, serveModels } from "../harness/grpc_client.ts";

const COUNT = 150_528; // 602 KB
const echo = defineModel({ predict: (inputs) => inputs });
// The function keeps what it answers, and answers it again.
const kept = defineModel({
  load: () => new Float32Array(COUNT).fill(7),
  predict: (_inputs, { model }) => ({ dtype: "float32", shape: [COUNT], data: model }),
});

interface Answer {
  readonly outputs: readonly [{ readonly data: Uint8Array }];
}

Deno.test("grpc: every one of many callers gets its own tensor back, whatever the others' sizes", async () => {
  await using served = await serveModels({ echo });
  const clients = Array.from({ length: 8 }, (_, i) => i);
  await Promise.all(clients.map(async (client) => {
    for (let round = 0; round < 6; round++) {
      const count = [COUNT, 3, 20_000, COUNT / 2, 4000, 17_000][(client + round) % 6]!;
      const data = Buffer.from(new Float32Array(count).fill(100 * client + round).buffer);
      const inputs = [{ data, shape: [count], dtype: "float32" }];
      const { outputs } = await answer<Answer>((done) =>
        served.inference.Predict({ model_name: "echo", inputs }, done)
      );
      assert(data.equals(outputs[0].data), `caller ${client} got other bytes in round ${round}`);
    }
  }));
});

Deno.test("grpc: several tensors of a message are its own, wherever in it they begin", async () => {
  const names = Array.from({ length: 8 }, (_, i) => "m".repeat(i + 1)); // each begins a byte later
  await using served = await serveModels(Object.fromEntries(names.map((name) => [name, echo])));
  const floats = Float32Array.from({ length: 20_001 }, (_, i) => i / 3);
  const doubles = Float64Array.from({ length: 10_001 }, (_, i) => i / 7);
  const longs = BigInt64Array.from({ length: 9_001 }, (_, i) => BigInt(i) << 40n);
  const sent = [floats, doubles, longs, floats].map(({ buffer }) => Buffer.from(buffer));
  const inputs = ["float32", "float64", "int64", "float32"].map((dtype, i) => ({
    data: sent[i],
    shape: [[floats, doubles, longs, floats][i]!.length],
    dtype,
  }));
  for (const name of names) {
    const { outputs } = await answer<{ readonly outputs: readonly { readonly data: Uint8Array }[] }>((done) =>
      served.inference.Predict({ model_name: name, inputs }, done)
    );
    outputs.forEach(({ data }, i) => assert(sent[i]!.equals(data), `tensor ${i} of "${name}"`));
  }
});

Deno.test("grpc: a function may answer an array that it keeps", async () => {
  await using served = await serveModels({ kept });
  for (let round = 0; round < 3; round++) {
    const { output_tensor: values } = await answer<{ output_tensor: readonly number[] }>((done) =>
      served.v1.Predict({ model_id: "kept" }, done)
    );
    assertEquals([values.length, values.at(0), values.at(-1)], [COUNT, 7, 7]);
  }
});

const WIDE = 1024 * 1024;
const NARROW = 65_535;

/** The windows that the server has given a connection after each call with a message of so many bytes. */
async function windowsAfter(address: string, sizes: readonly number[]): Promise<(number | undefined)[]> {
  patchHttp2Close();
  const session = http2.connect(`http://${address}`);
  const closed = new Promise<void>((resolve) => session.on("close", resolve));
  const windows: (number | undefined)[] = [];
  for (const size of sizes) {
    const stream = session.request({
      ":method": "POST",
      ":path": "/inference.v1.ModelInference/Predict",
      "content-type": "application/grpc",
    });
    const ended = new Promise((resolve) => stream.on("close", resolve));
    stream.resume();
    const message = Buffer.alloc(5 + size); // field 0: no request, but its size counts all the same
    message.writeUInt32BE(size, 1);
    stream.end(message);
    await ended;
    await new Promise<void>((resolve) => session.ping(() => resolve())); // its settings came before the answer to that
    windows.push(session.remoteSettings.initialWindowSize);
  }
  session.destroy();
  await closed;
  return windows;
}

Deno.test("grpc: only a connection that has brought a large message gets larger windows", async () => {
  await using served = await serveModels({ echo });
  assertEquals(await windowsAfter(served.address, [10, 65_000]), [NARROW, NARROW]);
  assertEquals(await windowsAfter(served.address, [10, 100_000, 10]), [NARROW, WIDE, WIDE]);
});
