// What /metrics says of a function is the same at every level: waits, computing, starts, deaths.
import { assert, assertEquals } from "tensorlet/assert";
import { type Exposition, parseExposition } from "../harness/exposition.ts";
import { answer, collect } from "../harness/grpc_client.ts";
import { serveFolder } from "../harness/served_folder.ts";

// Answers with the milliseconds that its handler took.
const TIMED = `
import { defineModel } from "tensorlet";
const pause = () => new Promise((resolve) => setTimeout(resolve, 20));
export default defineModel({
  output: { dtype: "float64" },
  params: { exits: { type: "boolean", default: false } },
  load: pause,
  async predict(_inputs, ctx) {
    if (ctx.params.exits) Deno.exit(1);
    const start = performance.now();
    await pause();
    return Float64Array.of(performance.now() - start);
  },
  async *stream() {
    yield* ["a", "b"];
  },
});
`;

interface Predicted {
  readonly output_tensor: readonly number[];
}

for (const isolation of ["inline", "worker", "process"] as const) {
  Deno.test(`/metrics knows waits, computing and starts of a function at level ${isolation}`, async () => {
    const files = { "timed.ts": TIMED, "functions.json": JSON.stringify({ timed: { isolation, concurrency: 1 } }) };
    await using served = await serveFolder(files, { http: { port: 0 } });
    const { v1, server } = served;
    const scrape = async (): Promise<Exposition> => {
      const response = await fetch(`http://127.0.0.1:${server.addresses.http!.port}/metrics`);
      return parseExposition(await response.text());
    };
    const predict = (params = {}) => answer<Predicted>((done) => v1.Predict({ model_id: "timed", params }, done));
    const before = await scrape();
    assertEquals(before.sum("tensorlet_load_duration_seconds_count"), 0);
    assertEquals(before.sum("tensorlet_model_state", `model="timed"`, `state="registered"`), 1);

    const answers = await Promise.all([predict(), predict()]);
    await collect(v1.StreamPredict({ model_id: "timed" }));
    const after = await scrape();
    const labels = `kind="predict",model="timed",version="1"`;
    const [load, queue, compute] = ["load", "queue", "compute"].map((stage) =>
      after.of(`tensorlet_${stage}_duration_seconds_sum`)
    );
    const ms = answers.map(({ output_tensor }) => output_tensor[0]!);
    assertEquals(after.sum("tensorlet_load_duration_seconds_count"), 1);
    assertEquals(after.sum("tensorlet_instances", `state="idle"`), 1);
    assertEquals(after.sum("tensorlet_queue_duration_seconds_count", labels), 2);
    // The first one waited for the start; what is around a handler takes longer than it.
    assert(queue!.get(labels)! >= load!.get(`model="timed",version="1"`)!);
    assert(compute!.get(labels)! * 1000 >= (ms[0]! + ms[1]!) * 0.999);
    assertEquals(after.sum("tensorlet_compute_duration_seconds_count", `kind="stream"`), 1);
    assertEquals(after.sum("tensorlet_tokens_total"), 2);
    if (isolation === "inline") return;

    await predict({ exits: "true" }).catch(() => {});
    await predict();
    const replaced = await scrape();
    assertEquals(replaced.sum("tensorlet_instance_deaths_total"), 1);
    assertEquals(replaced.sum("tensorlet_load_duration_seconds_count"), 2);
    assertEquals(replaced.sum("tensorlet_requests_total", `code="unavailable"`), 1);
    assertEquals(replaced.sum("tensorlet_requests_in_flight"), 0);
  });
}
