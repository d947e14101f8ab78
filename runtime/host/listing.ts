// What the server prints when it starts: what it serves, and how to call it.
import type { CatalogEntry } from "../core/catalog.ts";
import { fillShape } from "../core/check.ts";
import { formatSpec, type NamedSpec, type ParamSpecs } from "../core/spec.ts";
import { formatAddress, type FunctionStatus } from "./control.ts";

/** The start-up text: one line a function, then how to call one. */
export function formatListing(entries: readonly CatalogEntry[], address: Deno.NetAddr, version: string): string {
  const target = formatAddress(address);
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
    `tensorlet ${version}: ${count(entries)} on grpc://${target}`,
    "",
    ...lines,
    "",
    ...calls.length > 0 ? ["Call one (or see examples/python_client and examples/go_client):", ...calls] : [],
    "",
  ].join("\n");
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
export interface ListedFunction extends Partial<Omit<FunctionStatus, "state">> {
  readonly name: string;
  readonly version: string;
  readonly state: FunctionStatus["state"] | "not running";
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
}

const COLUMNS: Readonly<Record<string, (row: ListedFunction) => string | number | undefined>> = {
  function: ({ name, version, revision }) => `${name}@${version}${revision ? ` r${revision}` : ""}`,
  state: ({ state }) => state,
  isolation: ({ isolation }) => isolation,
  instances: ({ instances, maxInstances }) =>
    maxInstances === undefined ? undefined : `${instances ?? 0}/${maxInstances}`,
  busy: ({ busy }) => busy,
  queued: ({ queued }) => queued,
  answers: ({ kinds }) => kinds?.join(" "),
  permissions: ({ permissions }) => permissions,
};

/** The text of `list`: one line a function, under the names of the columns. */
export function formatStatus({ version, state, address, pid, folder, port, functions }: Listed): string {
  const where = address === undefined ? `in ${folder}, no server on port ${port}` : `on grpc://${address}`;
  const how = address === undefined ? "" : `, ${state}, process ${pid}`;
  const shown = Object.entries(COLUMNS).map(([title, cellOf]) => {
    const cells = functions.map((row) => String(cellOf(row) ?? ""));
    const width = Math.max(title.length, ...cells.map(({ length }) => length));
    return { isEmpty: cells.every((cell) => cell === ""), cells: [title, ...cells].map((cell) => cell.padEnd(width)) };
  }).filter(({ isEmpty }) => !isEmpty);
  const lines = [-1, ...functions.keys()].map((i) =>
    `  ${shown.map(({ cells }) => cells[i + 1]).join("  ")}`.trimEnd()
  );
  return [`tensorlet ${version}: ${count(functions)} ${where}${how}`, "", ...functions.length > 0 ? lines : []].join(
    "\n",
  );
}

function count(functions: readonly unknown[]): string {
  return `${functions.length} function${functions.length === 1 ? "" : "s"}`;
}
