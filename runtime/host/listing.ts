// What the server prints when it starts: what it serves, and how to call it.
import type { CatalogEntry } from "../core/catalog.ts";
import { fillShape } from "../core/check.ts";
import { formatSpec, type NamedSpec, type ParamSpecs } from "../core/spec.ts";
import { formatAddress } from "./address.ts";
import type { MergedFunction, ProcessStatus } from "./status.ts";

/** The start-up text: one line a function, then how to call one. */
export function formatListing(
  entries: readonly CatalogEntry[],
  { grpc, http }: { readonly grpc: Deno.NetAddr; readonly http?: Deno.NetAddr },
  version: string,
): string {
  const target = formatAddress(grpc);
  const names = entries.map((entry) => `${entry.name}@${entry.version}`);
  const kinds = entries.map((entry) => entry.kinds.join(" ") || "(failed)");
  const nameWidth = Math.max(...names.map(({ length }) => length));
  const kindWidth = Math.max(...kinds.map(({ length }) => length));
  const lines = entries.map((entry, i) => {
    const io = entry.kinds.length === 0 ? "see the log" : formatIo(entry);
    return `  ${names[i]!.padEnd(nameWidth)}  ${kinds[i]!.padEnd(kindWidth)}  ${io}`;
  });
  const calls = howToCall(entries, target).map((line) => `  ${line}`);
  return [
    `tensorlet ${version}: ${count(entries)} on grpc://${target}${http ? ` and ${httpUrl(http)}` : ""}`,
    "",
    ...lines,
    "",
    ...calls.length > 0 ? ["Call one (or see examples/python_client and examples/go_client):", ...calls] : [],
    "",
  ].join("\n");
}

/** Where to find a server by HTTP. */
export function httpUrl(address: Deno.NetAddr): string {
  return `http://${formatAddress(address)}`;
}

// Three numbers are an input that it can take.
function takesFloats({ input }: CatalogEntry): boolean {
  const [first, ...rest] = input ?? [];
  if (first === undefined) return input === undefined;
  const takesThree = first.shape === undefined || fillShape(first.shape, 3) !== undefined;
  return ["float32", "any"].includes(first.dtype) && takesThree && rest.every((spec) => spec.optional);
}

function formatSpecs(specs: readonly NamedSpec[] | undefined): string {
  if (specs === undefined) return "any tensors";
  if (specs.length === 0) return "no tensors";
  return specs.map((spec) => spec.name === "0" ? formatSpec(spec) : `${spec.name}: ${formatSpec(spec)}`).join(", ");
}

function formatIo({ kinds, input, output, params }: CatalogEntry): string {
  const text = kinds.every((kind) => kind === "stream" || kind === "chat");
  const from = text && !input?.length ? "text" : formatSpecs(input);
  return `${from} -> ${text && output === undefined ? "text" : formatSpecs(output)}${formatParams(params)}`;
}

function formatParams(params: ParamSpecs | undefined): string {
  const names = Object.keys(params ?? {});
  return names.length > 0 ? `; params ${names.join(", ")}` : "";
}

function howToCall(entries: readonly CatalogEntry[], target: string): readonly string[] {
  const service = `${target} inference.v1.ModelInference`;
  const streams = entries.find((entry) => entry.kinds.includes("stream") && !entry.kinds.includes("predict"));
  const predicts = entries.find((entry) => entry.kinds.includes("predict") && takesFloats(entry));
  const chats = entries.find((entry) => entry.kinds.includes("chat"));
  const lines: string[] = [];
  if (predicts) {
    lines.push(
      `grpcurl -plaintext -d '{"model_id": "${predicts.name}", "input_tensor": [1, 2, 3]}' ${service}/Predict`,
    );
  }
  if (streams) {
    lines.push(`grpcurl -plaintext -d '{"model_id": "${streams.name}", "max_tokens": 20}' ${service}/StreamPredict`);
  }
  if (chats) {
    lines.push(`grpcurl -plaintext -H 'model-id: ${chats.name}' -d '{"content": "Hello"}' ${service}/ChatStream`);
  }
  return lines;
}

/** A function as `list` shows it; what runs nowhere has fewer columns. */
export interface ListedFunction extends Partial<Omit<MergedFunction, "state">> {
  readonly name: string;
  readonly version: string;
  readonly state: MergedFunction["state"] | "not running";
}

/** What `list` shows: a server's functions, or a folder's where no server runs. */
export interface Listed {
  readonly version: string;
  readonly state: string;
  /** Where a server runs. */
  readonly address?: string;
  readonly pid?: number;
  /** Where none does. */
  readonly folder?: string;
  readonly port?: number;
  readonly functions: readonly ListedFunction[];
  readonly processes?: readonly ProcessStatus[];
}

/** What the columns of a table are called, and what is in them. */
type Columns<T> = Readonly<Record<string, (row: T) => string | number | undefined>>;

const FUNCTION_COLUMNS: Columns<ListedFunction> = {
  function: ({ name, version, revision }) => `${name}@${version}${revision ? ` r${revision}` : ""}`,
  state: ({ state, states }) =>
    states ? Object.entries(states).map(([each, count]) => `${each} ${count}`).join(", ") : state,
  isolation: ({ isolation }) => isolation,
  instances: ({ instances, maxInstances }) =>
    maxInstances === undefined ? undefined : `${instances ?? 0}/${maxInstances}`,
  busy: ({ busy }) => busy,
  queued: ({ queued }) => queued,
  answers: ({ kinds }) => kinds?.join(" "),
  permissions: ({ permissions }) => permissions,
};

const PROCESS_COLUMNS: Columns<ProcessStatus> = {
  process: ({ process }) => process,
  pid: ({ pid }) => pid,
  state: ({ state }) => state,
  calls: ({ callsStarted }) => callsStarted,
  failed: ({ callsFailed }) => callsFailed,
  "in progress": ({ callsStarted, callsFinished }) => callsStarted - callsFinished,
  sessions: ({ sessions }) => sessions,
  memory: ({ rssBytes }) => `${Math.round(rssBytes / 1024 ** 2)} MB`,
};

/** The text of `list`: one line a function, then one a process where there are several. */
export function formatStatus(
  { version, state, address, pid, folder, port, functions, processes = [] }: Listed,
): string {
  const where = address === undefined ? `in ${folder}, no server on port ${port}` : `on grpc://${address}`;
  const how = address === undefined ? "" : `, ${state}, process ${pid}`;
  return [
    `tensorlet ${version}: ${count(functions)} ${where}${how}`,
    "",
    ...table(FUNCTION_COLUMNS, functions),
    ...processes.length > 1 ? ["", ...table(PROCESS_COLUMNS, processes)] : [],
  ].join("\n");
}

// Rows under the names of the columns; columns that are empty are left out.
function table<T>(columns: Columns<T>, rows: readonly T[]): readonly string[] {
  if (rows.length === 0) return [];
  const shown = Object.entries(columns).map(([title, cellOf]) => {
    const cells = rows.map((row) => String(cellOf(row) ?? ""));
    const width = Math.max(title.length, ...cells.map(({ length }) => length));
    return { isEmpty: cells.every((cell) => cell === ""), cells: [title, ...cells].map((cell) => cell.padEnd(width)) };
  }).filter(({ isEmpty }) => !isEmpty);
  return [-1, ...rows.keys()].map((i) => `  ${shown.map(({ cells }) => cells[i + 1]).join("  ")}`.trimEnd());
}

function count(functions: readonly unknown[]): string {
  return `${functions.length} function${functions.length === 1 ? "" : "s"}`;
}
