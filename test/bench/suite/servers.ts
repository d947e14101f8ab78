// The servers under test: what starts each, and what it has to answer before it is measured.
import { connect, FUNCTIONS, MAIN, ROOT } from "../../harness/server_process.ts";
import { DIGIT, image } from "./bodies.ts";
import { type Command, Unavailable } from "./server_process.ts";
import { buildCppServer, bundleBareServer, freePort, PROTOS, rivalEnvironment, run } from "./tools.ts";
import type { Workbench } from "./workbench.ts";

/** A server that can be started. */
export interface ServerSpec {
  readonly name: string;
  /** It keeps a processor busy while nobody calls it, so it stands still while others are measured. */
  readonly isRestless?: boolean;
  /** @throws {Unavailable} where it cannot run here */
  command(bench: Workbench): Promise<Command>;
  /** @throws {Error} where it does not answer as it should */
  check(address: string, bench: Workbench): Promise<void>;
}

const DENO = Deno.execPath();
const MODEL = `${ROOT}functions/digits/model.onnx`;
const CHECK_LIMIT_MS = 60_000;

/** The servers of the fixtures `echo` and `counter`. */
export const TENSORLET: ServerSpec = fixtureServer("Tensorlet", () => tensorlet(FUNCTIONS, "--isolation", "inline"));
export const TENSORLET_WORKER: ServerSpec = fixtureServer("Tensorlet, worker", () => tensorlet(FUNCTIONS));
export const TENSORLET_2: ServerSpec = fixtureServer("Tensorlet, 2 processes", async () => {
  const help = await run(DENO, [...MAIN, "--help"], { env: { NO_COLOR: "1" } });
  if (!help.includes("--processes")) throw new Unavailable("mod.ts has no option --processes");
  return tensorlet(FUNCTIONS, "--isolation", "inline", "--processes", "2");
});
export const PYTHON: ServerSpec = fixtureServer("Python", async (bench) => {
  const { python, stubs } = await bench.python();
  const args = [`${ROOT}examples/python_server/server.py`, "--port", "0"];
  return { program: python, args, env: { PYTHONPATH: stubs, PYTHONDONTWRITEBYTECODE: "1" } };
});
export const CPP: ServerSpec = fixtureServer("C++", async () => ({ program: await buildCppServer(), args: [] }));
export const BARE_DENO: ServerSpec = fixtureServer("grpc-js, Deno", () => ({
  program: DENO,
  args: ["run", "-A", `${ROOT}test/bench/bare_server.ts`, PROTOS],
}));
export const BARE_NODE: ServerSpec = fixtureServer("grpc-js, Node", async (bench) => ({
  program: "node",
  args: [await bench.once("bundle", () => bundleBareServer(bench.folder)), PROTOS],
}));
export const JSON_HTTP: ServerSpec = {
  name: "JSON over HTTP",
  command: () => Promise.resolve({ program: DENO, args: ["run", "-A", `${ROOT}test/bench/json_server.ts`] }),
  check: async (address, bench) => void await (await bench.client()).do("array_by_json", { address, calls: 1 }),
};

/** The functions of the repository. */
export const TENSORLET_MODELS: ServerSpec = {
  name: "Tensorlet, functions/",
  command: () => Promise.resolve(tensorlet(`${ROOT}functions`)),
  check: (address) => checkDigits(address, "digits"),
};
/** `digits`, and `digits_unbatched`: the same without batching. */
export const TENSORLET_TWINS: ServerSpec = {
  name: "Tensorlet, twins",
  command: async (bench) => tensorlet(await bench.once("twins", () => makeTwins(`${bench.folder}/twins`))),
  check: async (address) => {
    for (const name of ["digits", "digits_unbatched"]) await checkDigits(address, name);
  },
};

/** What runs on V8, which goes on compiling for some 100,000 small calls; the others are as fast at once. */
export const ON_V8: ReadonlySet<ServerSpec> = new Set([
  TENSORLET,
  TENSORLET_WORKER,
  TENSORLET_2,
  BARE_DENO,
  BARE_NODE,
  JSON_HTTP,
  TENSORLET_MODELS,
  TENSORLET_TWINS,
]);

/** The same network under other frameworks. */
export const LITSERVE: ServerSpec = litserve("LitServe", []);
export const LITSERVE_BATCHED: ServerSpec = { ...litserve("LitServe, batching", ["--batching"]), isRestless: true };
export const BENTOML: ServerSpec = bentoml("BentoML", "Digits");
export const BENTOML_BATCHED: ServerSpec = bentoml("BentoML, batching", "BatchedDigits");
export const MLSERVER: ServerSpec = mlserver("MLServer", "http");
export const MLSERVER_GRPC: ServerSpec = mlserver("MLServer, gRPC", "grpc");

function fixtureServer(name: string, command: (bench: Workbench) => Command | Promise<Command>): ServerSpec {
  return {
    name,
    command: async (bench) => await command(bench),
    check: checkFixtures,
  };
}

function tensorlet(folder: string, ...options: string[]): Command {
  return { program: DENO, args: [...MAIN, folder, "--port", "0", ...options] };
}

function litserve(name: string, options: readonly string[]): ServerSpec {
  return {
    name,
    command: async () => {
      const bin = await rivalEnvironment("litserve");
      const port = freePort();
      const args = [
        `${ROOT}test/bench/rivals/litserve/server.py`,
        "--model",
        MODEL,
        "--port",
        String(port),
        ...options,
      ];
      return { program: `${bin}/python`, args, env: { PYTHONDONTWRITEBYTECODE: "1" }, port };
    },
    check: (address, bench) =>
      checkHttp(address, "/predict", bench.body("digits_litserve"), ({ probabilities }) => probabilities),
  };
}

function bentoml(name: string, service: string): ServerSpec {
  return {
    name,
    command: async () => {
      const bin = await rivalEnvironment("bentoml");
      const port = freePort();
      return {
        program: `${bin}/bentoml`,
        args: ["serve", `service:${service}`, "--host", "127.0.0.1", "--port", String(port)],
        cwd: `${ROOT}test/bench/rivals/bentoml`,
        env: { MODEL, BENTOML_DO_NOT_TRACK: "True", PYTHONDONTWRITEBYTECODE: "1" },
        port,
      };
    },
    check: (address, bench) => checkHttp(address, "/predict", bench.body("digits_bentoml"), ([first]) => first),
  };
}

function mlserver(name: string, protocol: "http" | "grpc"): ServerSpec {
  return {
    name,
    command: async (bench) => {
      const bin = await rivalEnvironment("mlserver");
      const folder = `${bench.folder}/digits`; // it has to have the model's name
      await Deno.mkdir(folder, { recursive: true });
      const settings = { name: "digits", implementation: "digits_runtime.Digits", parameters: { uri: MODEL } };
      await Deno.writeTextFile(`${folder}/model-settings.json`, JSON.stringify(settings));
      const ports = { http: freePort(), grpc: freePort() };
      return {
        program: `${bin}/mlserver`,
        args: ["start", folder],
        env: {
          PYTHONPATH: `${ROOT}test/bench/rivals/mlserver`,
          PYTHONDONTWRITEBYTECODE: "1",
          MLSERVER_HOST: "127.0.0.1",
          MLSERVER_HTTP_PORT: String(ports.http),
          MLSERVER_GRPC_PORT: String(ports.grpc),
          MLSERVER_METRICS_ENDPOINT: "",
          MLSERVER_PARALLEL_WORKERS: "0", // in its own process: twice as fast here as with one or two workers
        },
        port: ports[protocol],
      };
    },
    check: async (address, bench) => {
      if (protocol === "grpc") return; // its answers are told from errors by their size
      const body = bench.body("digits_mlserver");
      await checkHttp(address, "/v2/models/digits/infer", body, ({ outputs }) => outputs[0].data);
    },
  };
}

/** Copies `digits`, once as it is and once without its line about batching. */
async function makeTwins(folder: string): Promise<string> {
  const source = `${ROOT}functions/digits`;
  for (const name of ["digits", "digits_unbatched"]) {
    await Deno.mkdir(`${folder}/${name}`, { recursive: true });
    for (const file of ["mod.ts", "network.ts", "model.onnx"]) {
      await Deno.copyFile(`${source}/${file}`, `${folder}/${name}/${file}`);
    }
  }
  const text = await Deno.readTextFile(`${source}/mod.ts`);
  const unbatched = text.replace(/^ *batching: .*\n/m, "");
  if (unbatched === text) throw new Error("functions/digits/mod.ts has no line about batching");
  await Deno.writeTextFile(`${folder}/digits_unbatched/mod.ts`, unbatched);
  const { digits } = JSON.parse(await Deno.readTextFile(`${ROOT}functions/functions.json`));
  const config = { "*": { warm: true }, digits, digits_unbatched: digits };
  await Deno.writeTextFile(`${folder}/functions.json`, JSON.stringify(config));
  return folder;
}

// Tensors as bytes are checked by the Python client, answer by answer.
async function checkFixtures(address: string): Promise<void> {
  using client = connect(portOf(address));
  const values = [1, 2, 3];
  const output = await predict(client, "echo", values);
  if (`${output}` !== `${values}`) throw new Error(`echo answered [${output}], wanted [${values}]`);
  const wanted = Array.from({ length: 100 }, (_, i) => `t${i}`);
  const tokens: string[] = [];
  const deadline = new Date(Date.now() + CHECK_LIMIT_MS);
  const stream = client.StreamPredict({ model_id: "counter", max_tokens: 100 }, { deadline });
  for await (const { token } of stream) tokens.push(token);
  if (`${tokens}` !== `${wanted}`) throw new Error(`counter answered ${tokens}, wanted ${wanted}`);
}

async function checkDigits(address: string, model: string): Promise<void> {
  using client = connect(portOf(address));
  checkProbabilities(await predict(client, model, [...image()]));
}

function predict(client: ReturnType<typeof connect>, model_id: string, input_tensor: number[]): Promise<number[]> {
  const deadline = new Date(Date.now() + CHECK_LIMIT_MS);
  return new Promise((resolve, reject) =>
    client.Predict(
      { model_id, input_tensor },
      { deadline },
      (error: unknown, answer: { readonly output_tensor: number[] }) =>
        error ? reject(error) : resolve(answer.output_tensor),
    )
  );
}

function portOf(address: string): number {
  return Number(address.split(":")[1]);
}

/** Asks until the model is loaded. */
async function checkHttp(
  address: string,
  path: string,
  body: string,
  // deno-lint-ignore no-explicit-any
  toProbabilities: (answer: any) => number[],
): Promise<void> {
  const request = { method: "POST", body: await Deno.readFile(body), headers: { "content-type": "application/json" } };
  const end = performance.now() + CHECK_LIMIT_MS;
  for (;;) {
    const response = await fetch(`http://${address}${path}`, request);
    const text = await response.text();
    if (response.ok) return checkProbabilities(toProbabilities(JSON.parse(text)));
    if (performance.now() > end) throw new Error(`${path} answered with status ${response.status}: ${text}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

function checkProbabilities(probabilities: readonly number[]): void {
  const read = probabilities.indexOf(Math.max(...probabilities));
  if (read !== DIGIT) throw new Error(`The image of a ${DIGIT} was read as a ${read}: [${probabilities}]`);
}
