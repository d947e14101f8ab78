// One request, one answer.
import type { CallOptions, Prediction } from "../client.ts";
import type { AnyTensor } from "../core/tensor.ts";
import { ConfigError } from "../host/error.ts";
import { wantedDType } from "./failure.ts";
import { formatDocument, formatOutputs } from "./format.ts";
import { fileProblem, type Input, type Request } from "./inputs.ts";
import { writeNpy } from "./npy.ts";
import { note, type Output } from "./output.ts";
import { requestOptions, type Run } from "./run.ts";

/** Calls `predict` and writes the answer; `brief` = on one line. */
export async function predict(run: Run, request: Request, brief: boolean): Promise<void> {
  const { config, output } = run;
  const answer = await send(run, request.inputs, requestOptions(run, request.text));
  if (config.out !== undefined) return await writeFiles(config.out, answer.outputs, output);
  const layout = brief ? "line" : "lines";
  const text = config.json
    ? formatDocument(answer)
    : formatOutputs(answer.outputs, { layout, summary: output.isTerminal });
  await output.write(`${text}\n`);
}

// Values whose dtype nobody has chosen are sent once more, as what the function wants.
async function send(run: Run, inputs: readonly Input[], options: CallOptions): Promise<Prediction> {
  try {
    return await run.client.predict(inputs.map(({ tensor }) => tensor), withNames(options, inputs));
  } catch (error) {
    const wanted = wantedDType(error);
    const position = inputs.findIndex(({ name }, i) => [name, `${i}`].includes(wanted?.input));
    const convert = inputs[position]?.as;
    if (!wanted || !convert) throw error;
    return await send(run, inputs.with(position, convert(wanted.dtype)), options);
  }
}

// On the wire tensors have no names: metadata has them. Names that are numbers are positions, as answers have them.
function withNames(options: CallOptions, inputs: readonly Input[]): CallOptions {
  const names = inputs.flatMap(({ name }) => name === undefined || /^\d+$/.test(name) ? [] : [name]);
  if (names.length === 0) return options;
  if (names.length < inputs.length) throw new ConfigError("Cannot send some inputs by name and some by position");
  return { ...options, metadata: { ...options.metadata, "input-names": names.join(",") } };
}

// A .npy file holds one array: several outputs are numbered files.
async function writeFiles(path: string, outputs: readonly AnyTensor[], output: Output): Promise<void> {
  if (path === "-") {
    if (output.isTerminal) throw new ConfigError("Cannot write .npy to a terminal; --out names a file");
    if (outputs.length !== 1) {
      throw new ConfigError(`Cannot write ${outputs.length} tensors to stdout as one .npy file`);
    }
    return await output.writeBytes(writeNpy(outputs[0]!));
  }
  for (const [i, tensor] of outputs.entries()) {
    const name = outputs.length === 1 ? path : path.replace(/(\.npy)?$/, `.${i}$1`);
    try {
      await Deno.writeFile(name, writeNpy(tensor));
    } catch (error) {
      throw new ConfigError(`Cannot write ${name}: ${fileProblem(error)}`);
    }
    note(`${name}: ${tensor.dtype} [${tensor.shape.join(", ")}]`);
  }
}
