// The arguments behind `call`.
import { Argument, Command, InvalidArgumentError, Option } from "commander";
import { type DType, DTYPES, isDType } from "../core/dtype.ts";
import { ConfigError } from "../host/error.ts";
import { option, parse, setUp, wholeNumber } from "../host/options.ts";

/** What a call is to be; `auto` = what the function can answer. */
export type CallMode = "auto" | "stream" | "chat" | "batch";

/** What `call` is asked to do. */
export interface CallConfig {
  /** `name` or `name@version`. */
  readonly model: string;
  /** What is sent, as {@linkcode readRequests} reads it. */
  readonly inputs: readonly string[];
  readonly mode: CallMode;
  /** `host:port`. */
  readonly address: string;
  readonly params: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, string>>;
  /** What every input is sent as. */
  readonly dtype?: DType;
  /** Where the answer is written as .npy; `-` = stdout. */
  readonly out?: string;
  readonly maxTokens?: number;
  readonly timeoutMs?: number;
  /** The session of a chat that goes on. */
  readonly session?: string;
  /** The file of a batch's rows; `-` = stdin. */
  readonly batch?: string;
  readonly json: boolean;
}

const HELP = `
Inputs, in the order in which the function declares them:
  [[1, 2], [3, 4]]   JSON: whole numbers are int64, others float32, or what the function wants
  image.npy          a file of NumPy's, or of JSON
  -                  stdin: JSON, JSON lines (a call each), or .npy
  "Emma was"         a text is --param prompt=TEXT; with --chat it is said

Examples:
  call affine '[1, 2, 3]'
  call digits image.npy --out probabilities.npy
  echo '{"dtype": "int8", "shape": [2], "data": [1, 2]}' | call affine - --json
  call austen "Emma was" --max-tokens 40
  call austen --chat
  call digits --batch images.csv > probabilities.jsonl

Status: 0 done, 1 the call failed, 2 wrong usage, 130 interrupted.`;

/** Reads the arguments; returns a text to print instead, for `--help`. Throws `ConfigError`. */
export function parseCallConfig(args: readonly string[]): CallConfig | { readonly print: string } {
  let print = "";
  const command = new Command("deno run -A mod.ts call")
    .description("Calls a function of a running server.")
    .addArgument(new Argument("<model>", "name or name@version"))
    .addArgument(new Argument("[inputs...]", "tensors, or a text"))
    .addOption(option("--address <host:port>", "the server", "127.0.0.1:50051").argParser(readAddress))
    .addOption(pairs("-p, --param <name=value>", "a parameter; can be repeated", /^[^=]+$/))
    .addOption(pairs("-H, --metadata <name=value>", "a header; can be repeated", /^[\w.-]+$/))
    .addOption(new Option("--max-tokens <n>", "the most tokens of an answer").argParser(wholeNumber(1, 2 ** 32 - 1)))
    .addOption(new Option("--timeout-ms <ms>", "the call's deadline").argParser(wholeNumber(1, 2 ** 31 - 1)))
    .addOption(new Option("--dtype <dtype>", "what every tensor is sent as: int8, float32, ...").argParser(readDType))
    .addOption(new Option("--out <file>", "write the answer as .npy; - = stdout"))
    .addOption(new Option("--stream", "tokens as they come (by itself where there is nothing else)"))
    .addOption(new Option("--chat", "a conversation; from a pipe, a turn a line"))
    .addOption(new Option("--session <id>", "go on with a conversation"))
    .addOption(new Option("--batch <file>", "a call of many rows: JSON lines, CSV, 2-D .npy; - = stdin"))
    .addOption(new Option("--json", "print JSON, or JSON lines").default(false))
    .addHelpText("after", HELP);
  setUp(command, (text) => print += text);
  if (!parse(command, args)) return { print };
  const { param, metadata, stream, chat, ...options } = command.opts<Options>();
  const [model, inputs] = command.processedArgs as [string, readonly string[]];
  const asked: Readonly<Record<string, unknown>> = { stream, chat: chat ?? options.session, batch: options.batch };
  const modes = (["stream", "chat", "batch"] as const).filter((mode) => asked[mode] !== undefined);
  const config = {
    ...options,
    model,
    inputs,
    params: param ?? {},
    metadata: metadata ?? {},
    mode: modes[0] ?? "auto",
  } as const;
  const problem = modes.length > 1 ? `--${modes[0]} and --${modes[1]} cannot be one call` : problemOf(config);
  if (problem) throw new ConfigError(`${problem}; --help lists the options`);
  return config;
}

interface Options extends Omit<CallConfig, "model" | "inputs" | "mode" | "params" | "metadata"> {
  readonly param?: Readonly<Record<string, string>>;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly stream?: true;
  readonly chat?: true;
}

function problemOf({ model, mode, inputs, out, dtype, maxTokens }: CallConfig): string | undefined {
  if (model === "") return "the model's name is empty";
  const misplaced = (flag: string, value: unknown, modes: readonly CallMode[]) =>
    value === undefined || modes.includes(mode) ? undefined : `${flag} does nothing in a ${mode} call`;
  if (mode === "batch" && inputs.length > 0) return `a batch reads its rows from --batch, got also "${inputs[0]}"`;
  if (mode === "chat" && inputs.length > 1) return `a chat begins with one text, got ${inputs.length}`;
  return misplaced("--out", out, ["auto"]) ?? misplaced("--dtype", dtype, ["auto", "stream"]) ??
    misplaced("--max-tokens", maxTokens, ["auto", "stream"]);
}

function readAddress(text: string): string {
  const address = text.replace(/^grpc:\/\//, "");
  const [, port] = /^(?:[^\s:/[\]]+|\[[\da-fA-F:.%]+\]):(\d{1,5})$/.exec(address) ?? [];
  if (port !== undefined && Number(port) >= 1 && Number(port) <= 65_535) return address;
  throw new InvalidArgumentError("Wanted HOST:PORT, like 127.0.0.1:50051.");
}

function readDType(text: string): DType {
  if (isDType(text)) return text;
  throw new InvalidArgumentError(`Wanted one of ${DTYPES.join(", ")}.`);
}

function pairs(flags: string, description: string, name: RegExp): Option {
  return new Option(flags, description).argParser((text: string, before?: object) => {
    const [, key, value] = /^(.*?)=(.*)$/s.exec(text) ?? [];
    if (key !== undefined && name.test(key)) return { ...before, [key]: value };
    throw new InvalidArgumentError("Wanted NAME=VALUE.");
  });
}
