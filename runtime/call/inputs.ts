// What a call sends: tensors and a text, from arguments, files and stdin.
import { type DType, DTYPES, isDType } from "../core/dtype.ts";
import { ModelError, quote } from "../core/error.ts";
import { type AnyTensor, elementCount } from "../core/tensor.ts";
import { ConfigError } from "../host/error.ts";
import { castTensor, elementsOf, guessDType, toTensor } from "./elements.ts";
import { describeJson, isJsonObject, type Json, type JsonObject, parseJson } from "./json.ts";
import { isNpy, readNpy } from "./npy.ts";

/** A tensor that is to be sent. */
export interface Input {
  /** Undefined where only its position tells which one it is. */
  readonly name: string | undefined;
  readonly tensor: AnyTensor;
  /** The same values in another dtype, where nobody has chosen this one. Throws `ConfigError`. */
  readonly as: ((dtype: DType) => Input) | undefined;
}

/** What one call sends. */
export interface Request {
  readonly inputs: readonly Input[];
  /** What is no tensor. */
  readonly text: string | undefined;
}

/** Where inputs come from; both reject as Deno does. */
export interface Sources {
  readonly stdin: () => Promise<Uint8Array>;
  readonly file: (path: string) => Promise<Uint8Array>;
}

// What is to be JSON: brackets, quotes, numbers and words of JSON. Other words that are no file are a text.
const JSON_LIKE = /^\s*(["[{]|[^\p{L}]*$|(true|false|null|-?\d+(\.\d+)?e[+-]?\d+)\s*$)/iu;

/**
 * The requests that the arguments ask for: one, or one for each line of a source with JSON lines. Every tensor is of
 * `dtype` where one is given. Throws `ConfigError`.
 */
export async function readRequests(
  args: readonly string[],
  dtype: DType | undefined,
  sources: Sources,
): Promise<readonly Request[]> {
  const inputs: Input[] = [];
  let text: string | undefined;
  let usesStdin = false;
  for (const [position, arg] of args.entries()) {
    const { name, value } = splitName(arg);
    const label = name === undefined ? `input ${position}` : `input ${quote(name)}`;
    const source = await readSource(value, label, sources);
    if (value === "-" && usesStdin) throw new ConfigError("Cannot read stdin twice");
    usesStdin ||= value === "-";
    if (source.text !== undefined && name === undefined && dtype !== "string") {
      if (text !== undefined) throw new ConfigError(`Cannot send two texts, ${quote(text)} and ${quote(source.text)}`);
      text = source.text;
      continue;
    }
    const documents = source.text === undefined ? source.read(dtype) : [jsonInputs(source.text, label, dtype)];
    const named = documents.map((parts) => name === undefined ? parts : [onlyOne(parts, name, label)]);
    if (named.length !== 1) {
      if (args.length === 1) return named.map((parts) => ({ inputs: parts, text: undefined }));
      throw new ConfigError(`Cannot read ${label}: it has ${named.length} lines, which are calls of their own`);
    }
    inputs.push(...named[0]!);
  }
  return [{ inputs, text }];
}

function splitName(arg: string): { readonly name: string | undefined; readonly value: string } {
  const [, name, value] = /^([A-Za-z][\w.:/-]*)=(.*)$/s.exec(arg) ?? [];
  return { name, value: value ?? arg };
}

function onlyOne(parts: readonly Input[], name: string, label: string): Input {
  const [only] = parts;
  if (parts.length !== 1 || only!.name !== undefined) throw new ConfigError(`Cannot read ${label}: wanted one tensor`);
  return withName(only!, name);
}

function withName(input: Input, name: string): Input {
  return { ...input, name, as: input.as && ((dtype) => withName(input.as!(dtype), name)) };
}

type Source =
  | { readonly text: string }
  | { readonly text?: undefined; readonly read: (dtype: DType | undefined) => readonly (readonly Input[])[] };

async function readSource(value: string, label: string, sources: Sources): Promise<Source> {
  if (value !== "-" && JSON_LIKE.test(value)) {
    return { read: (dtype) => [jsonInputs(parse(value, label), label, dtype)] };
  }
  const isFile = /^\.{0,2}\/|\.(npy|npz|json|jsonl|ndjson)$/i.test(value);
  if (value !== "-" && !isFile) return { text: value };
  const where = value === "-" ? "stdin" : value;
  const bytes = value === "-" ? await sources.stdin() : await readFile(value, sources);
  return {
    read: (dtype) => isNpy(bytes) ? [[npyInput(bytes, where, dtype)]] : jsonDocuments(bytes, where, dtype),
  };
}

/** Reads a file that the user named. Throws `ConfigError`. */
export async function readFile(path: string, sources: Pick<Sources, "file">): Promise<Uint8Array> {
  try {
    return await sources.file(path);
  } catch (error) {
    throw new ConfigError(`Cannot read ${path}: ${fileProblem(error)}`);
  }
}

/** Why Deno could not do something with a file. */
export function fileProblem(error: unknown): string {
  if (error instanceof Deno.errors.NotFound) return "there is no such file";
  if (error instanceof Deno.errors.IsADirectory) return "it is a folder";
  if (error instanceof Deno.errors.PermissionDenied) return "this user may not do that";
  return (error as Error).message;
}

function npyInput(bytes: Uint8Array, where: string, dtype: DType | undefined): Input {
  const tensor = asUsage(() => readNpy(bytes, where));
  return { name: undefined, tensor: dtype ? asUsage(() => castTensor(tensor, dtype, where)) : tensor, as: undefined };
}

function jsonDocuments(bytes: Uint8Array, where: string, dtype: DType | undefined): readonly (readonly Input[])[] {
  if (bytes[0] === 0x50 && bytes[1] === 0x4b) {
    throw new ConfigError(`Cannot read ${where}: it is an archive; save single arrays with np.save`);
  }
  const text = decodeText(bytes, where);
  const lines = text.split("\n").flatMap((line, i) =>
    line.trim() === "" ? [] : [{ line, where: `${where}, line ${i + 1}` }]
  );
  if (lines.length === 0) throw new ConfigError(`Cannot read ${where}: it is empty`);
  // One value may go over many lines, as programs print it; else each line is one.
  if (lines.length === 1 || !isComplete(lines[0]!.line)) return [jsonInputs(parse(text, where), where, dtype)];
  return lines.map(({ line, where }) => jsonInputs(parse(line, where), where, dtype));
}

function isComplete(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

/** UTF-8 as a text. Throws `ConfigError`. */
export function decodeText(bytes: Uint8Array, where: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ConfigError(`Cannot read ${where}: it is neither .npy nor a text in UTF-8`);
  }
}

function parse(text: string, label: string): Json {
  return asUsage(() => parseJson(text, label));
}

// An object is a whole tensor, or tensors by name; anything else is one tensor.
function jsonInputs(json: Json, label: string, dtype: DType | undefined): readonly Input[] {
  if (!isJsonObject(json)) return [arrayInput(json, label, dtype)];
  if ("data" in json && "dtype" in json) return [wholeInput(json, label, dtype)];
  return Object.entries(json).map(([name, value]) => {
    const where = `${label}, ${quote(name)}`;
    const input = isJsonObject(value) ? wholeInput(value, where, dtype) : arrayInput(value, where, dtype);
    return withName(input, name);
  });
}

function arrayInput(json: Json, label: string, chosen: DType | undefined): Input {
  const elements = asUsage(() => elementsOf(json, label));
  const as = (dtype: DType): Input => ({
    name: undefined,
    tensor: asUsage(() => toTensor(elements, dtype, label)),
    as: undefined,
  });
  return { ...as(chosen ?? guessDType(elements)), as: chosen === undefined ? as : undefined };
}

// As `--json` prints it: the values flat, or nested as the shape says.
function wholeInput({ dtype, shape, data, ...rest }: JsonObject, label: string, chosen: DType | undefined): Input {
  const others = Object.keys(rest).filter((key) => key !== "name");
  if (!isDType(dtype) || data === undefined || others.length > 0) {
    const problem = others.length > 0
      ? `there is no field ${quote(others[0]!)}`
      : data === undefined
      ? "data is missing"
      : `dtype is ${describeJson(dtype ?? null)}, wanted one of ${DTYPES.join(", ")}`;
    throw new ConfigError(`Cannot read ${label} as a tensor { dtype, shape, data }: ${problem}`);
  }
  const { shape: nested, values } = asUsage(() => elementsOf(data, label));
  const dims = shape === undefined ? nested : dimsOf(shape, values.length, label);
  const tensor = asUsage(() => toTensor({ shape: dims, values }, dtype, label));
  return { name: undefined, tensor: chosen ? asUsage(() => castTensor(tensor, chosen, label)) : tensor, as: undefined };
}

function dimsOf(shape: Json, count: number, label: string): readonly number[] {
  const dims = Array.isArray(shape) ? shape.map(Number) : [NaN];
  if (dims.every((dim) => Number.isSafeInteger(dim) && dim >= 0) && elementCount(dims) === count) return dims;
  throw new ConfigError(`Cannot read ${label}: ${count} values do not fill shape ${JSON.stringify(dims)}`);
}

/** What is wrong with what the user gives is no failure of a call. */
export function asUsage<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof ModelError) throw new ConfigError(error.message);
    throw error;
  }
}
