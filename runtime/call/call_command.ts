// `deno run -A mod.ts call MODEL`: a client on the command line.
import { ClientError, createClient } from "../client.ts";
import { parseCallConfig } from "./arguments.ts";
import { chat } from "./chat.ts";
import { batch } from "./batch.ts";
import { failureText } from "./failure.ts";
import { readRequests, type Request } from "./inputs.ts";
import { note, OutputClosed, standardOutput } from "./output.ts";
import { predict } from "./predict.ts";
import { type Run, stdin } from "./run.ts";
import { stream } from "./stream.ts";

/** As shells number what SIGINT ends. */
const INTERRUPTED = 130;

/** Runs the command; resolves to the exit status. */
export async function call(args: readonly string[]): Promise<number> {
  const config = parseCallConfig(args);
  const output = standardOutput();
  if ("print" in config) {
    await output.write(`${config.print.trimEnd()}\n`);
    return 0;
  }
  using interrupt = new Interrupt();
  await using client = createClient(config.address, { model: config.model, retry: { retries: 0 } });
  try {
    await answer({ config, client, output, signal: interrupt.signal });
    return 0;
  } catch (error) {
    if (error instanceof OutputClosed) return 0;
    if (interrupt.signal.aborted) return INTERRUPTED;
    if (!(error instanceof ClientError)) throw error;
    note(failureText(error, isStream(config)));
    return 1;
  }
}

/** The first Ctrl-C cancels the calls, and is told to the user by the status; the second one ends the process. */
class Interrupt implements Disposable {
  readonly #controller = new AbortController();
  readonly #abort = () => {
    Deno.removeSignalListener("SIGINT", this.#abort);
    this.#controller.abort();
  };

  constructor() {
    Deno.addSignalListener("SIGINT", this.#abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    Deno.removeSignalListener("SIGINT", this.#abort);
  }
}

async function answer(run: Run): Promise<void> {
  const { mode, inputs, dtype } = run.config;
  if (mode === "batch") return await batch(run);
  if (mode === "chat") return await chat(run, inputs[0]);
  const requests = await readRequests(inputs, dtype, {
    stdin: () => new Response(stdin(run)).bytes(),
    file: Deno.readFile,
  });
  for (const request of requests) {
    if (isStream(run.config)) await stream(run, request);
    else await whatever(run, request, requests.length > 1);
  }
}

// Only streams are of tokens.
function isStream({ mode, maxTokens }: Run["config"]): boolean {
  return mode === "stream" || maxTokens !== undefined;
}

// A function says so before it has done anything, where it has no such handler.
async function whatever(run: Run, request: Request, isOneOfMany: boolean): Promise<void> {
  const { out, params } = run.config;
  const isText = request.inputs.length === 0 && out === undefined && !isOneOfMany;
  // Parameters of `predict` travel as metadata.
  const isAscii = /^[\x20-\x7e]*$/.test([request.text, ...Object.values(params)].join(""));
  const modes = [
    ...isAscii || !isText ? [() => predict(run, request, isOneOfMany)] : [],
    ...out === undefined ? [() => stream(run, request)] : [],
    ...isText ? [() => chat(run, request.text)] : [],
  ];
  let first: unknown;
  for (const mode of modes) {
    try {
      return await mode();
    } catch (error) {
      if (!(error instanceof ClientError && error.code === "unimplemented")) throw error;
      first ??= error;
    }
  }
  throw first;
}
