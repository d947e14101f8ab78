// One request, its tokens as they come.
import type { StreamInput } from "../client.ts";
import { castTensor } from "./elements.ts";
import { asUsage, type Input, type Request } from "./inputs.ts";
import { note } from "./output.ts";
import { ConfigError } from "../host/error.ts";
import { requestOptions, type Run } from "./run.ts";
import { formatPace, writeTokens } from "./tokens.ts";

/** Calls `stream` and writes its tokens. */
export async function stream(run: Run, { inputs, text }: Request): Promise<void> {
  const { client, config, output } = run;
  const { maxTokens, json } = config;
  const tokens = client.stream(floats(inputs), {
    ...requestOptions(run, text),
    ...maxTokens !== undefined && { maxTokens },
    // Who interrupts the command wants the function to stop, not to be waited for.
    resume: false,
  });
  const pace = await writeTokens(tokens, output, { json });
  if (!json) note(formatPace(pace));
}

// StreamPredict carries one tensor of floats.
function floats(inputs: readonly Input[]): StreamInput {
  const [input, ...others] = inputs;
  if (input === undefined) return [];
  if (others.length > 0) throw new ConfigError(`Cannot send ${inputs.length} tensors to a stream: it takes one`);
  const { tensor } = input;
  return asUsage(() => castTensor(tensor, "float32", "the input")) as StreamInput;
}
