// The rows of a batch: JSON lines, CSV, or a matrix of .npy, told apart by how they begin.
import { concatBytes } from "../core/bytes.ts";
import { ConfigError } from "../host/error.ts";
import { castTensor, elementsOf, toTensor } from "./elements.ts";
import { asUsage } from "./inputs.ts";
import { describeJson, isJsonObject, type Json, parseJson } from "./json.ts";
import { isNpy, readNpy } from "./npy.ts";

/** One feature vector. */
export interface Row {
  readonly id: string | undefined;
  readonly features: Float32Array;
}

const MAGIC_BYTES = 6;

/**
 * The rows of a source, as they come. Throws `ConfigError` for what is no row, and says in which line it stands;
 * `where` names the source.
 */
export async function* readRows(
  chunks: AsyncIterable<Uint8Array>,
  where: string,
): AsyncGenerator<Row, void, undefined> {
  const source = chunks[Symbol.asyncIterator]();
  try {
    let head: Uint8Array = new Uint8Array(0);
    let next;
    while (head.length < MAGIC_BYTES && !(next = await source.next()).done) head = concatBytes([head, next.value]);
    const all = prepend(head, source);
    yield* isNpy(head) ? matrixRows(concatBytes(await Array.fromAsync(all)), where) : textRows(all, where);
  } finally {
    await source.return?.();
  }
}

async function* prepend(head: Uint8Array, source: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield head;
  for (let next = await source.next(); !next.done; next = await source.next()) yield next.value;
}

function* matrixRows(bytes: Uint8Array, where: string): Generator<Row, void, undefined> {
  const { shape, data } = asUsage(() => castTensor(readNpy(bytes, where), "float32", where));
  if (shape.length !== 2) {
    throw new ConfigError(
      `Cannot read the rows of ${where}: its shape is [${shape}], wanted two dims, [rows,features]`,
    );
  }
  const [count, width] = shape as readonly [number, number];
  for (let i = 0; i < count; i++) {
    yield { id: undefined, features: (data as Float32Array).subarray(i * width, (i + 1) * width) };
  }
}

async function* textRows(chunks: AsyncIterable<Uint8Array>, where: string): AsyncGenerator<Row, void, undefined> {
  let read: ((line: string, label: string) => Row | undefined) | undefined;
  let number = 0;
  for await (const line of lines(chunks, where)) {
    number++;
    if (line.trim() === "") continue;
    const label = `${where}, line ${number}`;
    read ??= /^\s*[[{]/.test(line) ? jsonRow : csvReader(line);
    const row = read(line, label);
    if (row) yield row;
  }
}

/** The lines of UTF-8. Throws `ConfigError` where it is none. */
export async function* lines(
  chunks: AsyncIterable<Uint8Array>,
  where: string,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const decode = (chunk?: Uint8Array) => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch {
      throw new ConfigError(`Cannot read ${where}: it is no text in UTF-8`);
    }
  };
  let rest = "";
  for await (const chunk of chunks) {
    const parts = (rest + decode(chunk)).split("\n");
    rest = parts.pop()!;
    yield* parts;
  }
  rest += decode();
  if (rest !== "") yield rest;
}

function jsonRow(line: string, label: string): Row {
  const json = asUsage(() => parseJson(line, label));
  if (!isJsonObject(json)) return { id: undefined, features: vectorOf(json, label) };
  const { id, features, ...rest } = json;
  const [other] = Object.keys(rest);
  if (features === undefined || other !== undefined || (id !== undefined && typeof id !== "string")) {
    throw new ConfigError(`Cannot read ${label}: wanted [numbers] or {"id": "a text", "features": [numbers]}`);
  }
  return { id, features: vectorOf(features, label) };
}

function vectorOf(json: Json, label: string): Float32Array {
  if (!Array.isArray(json)) {
    throw new ConfigError(`Cannot read ${label}: it is ${describeJson(json)}, wanted [numbers]`);
  }
  const { shape, data } = asUsage(() => toTensor(elementsOf(json, label), "float32", label));
  if (shape.length === 1) return data as Float32Array;
  throw new ConfigError(`Cannot read ${label}: it has the shape [${shape}], wanted [numbers]`);
}

// Numbers need no quotes, so a line is a row. The first line may be names.
function csvReader(first: string): (line: string, label: string) => Row | undefined {
  const separator = ["\t", ";"].find((character) => first.includes(character)) ?? ",";
  const cellsOf = (line: string) => line.split(separator).map((cell) => cell.trim().replace(/^"(.*)"$/, "$1"));
  const hasNames = cellsOf(first).every((cell) => cell === "" || Number.isNaN(toNumber(cell) ?? NaN));
  const width = cellsOf(first).length;
  let isFirst = true;
  return (line, label) => {
    const isNames = isFirst && hasNames;
    isFirst = false;
    if (isNames) return undefined;
    const cells = cellsOf(line);
    if (cells.length !== width) {
      throw new ConfigError(`Cannot read ${label}: it has ${cells.length} values, the first line has ${width}`);
    }
    return { id: undefined, features: Float32Array.from(cells, (cell, i) => numberOf(cell, i, label)) };
  };
}

function numberOf(cell: string, column: number, label: string): number {
  const number = toNumber(cell);
  if (number !== undefined) return number;
  throw new ConfigError(`Cannot read ${label}: value ${column + 1} is ${JSON.stringify(cell)}, wanted a number`);
}

// Numbers as programs write them, NumPy's and pandas' `nan` and `inf` among them.
function toNumber(cell: string): number | undefined {
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(cell)) return Number(cell);
  if (/^[+-]?nan$/i.test(cell)) return NaN;
  const infinity = /^([+-]?)inf(inity)?$/i.exec(cell);
  return infinity ? (infinity[1] === "-" ? -Infinity : Infinity) : undefined;
}
