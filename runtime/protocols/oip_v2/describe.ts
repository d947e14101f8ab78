// What clients may know of the server and its functions: metadata, and Triton's model configuration.
import denoJson from "../../../deno.json" with { type: "json" };
import type { Catalog, CatalogEntry } from "../../core/catalog.ts";
import { findNamedEntry } from "../../core/catalog.ts";
import { ModelError } from "../../core/error.ts";
import type { NamedSpec } from "../../core/spec.ts";
import { datatypeOf } from "./datatype.ts";
import { wireName } from "./tensors.ts";
import { hasPrompt, TEXT_INPUT, textOutputName } from "./text.ts";

const PLATFORM = "deno";
const BACKEND = "tensorlet";

/** `ServerMetadataResponse`. */
export const SERVER_METADATA = {
  name: denoJson.name,
  version: denoJson.version,
  extensions: [
    "sequence",
    "model_repository",
    "model_configuration",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "generate",
  ],
};

/** The function that a request names by `name` and `version`, "" for the server's choice. Throws `not_found`. */
export function entryOf(catalog: Catalog, name: string, version: string): CatalogEntry {
  if (name === "") throw new ModelError("invalid_argument", "Cannot choose a model: its name is empty");
  return findNamedEntry(catalog, version === "" ? name : `${name}@${version}`);
}

interface TensorMetadata {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly number[];
}

interface DescribedTensor extends TensorMetadata {
  readonly optional: boolean;
}

/** `ModelMetadataResponse`. */
export function modelMetadata(catalog: Catalog, entry: CatalogEntry) {
  const plain = ({ name, datatype, shape }: DescribedTensor): TensorMetadata => ({ name, datatype, shape });
  return {
    name: entry.name,
    versions: [...catalog.list()].filter(({ name }) => name === entry.name).map(({ version }) => version),
    platform: PLATFORM,
    inputs: inputsOf(entry).map(plain),
    outputs: outputsOf(entry).map(plain),
  };
}

/** `ModelConfig`, the part of it that means something here; `typeOf` gives what stands for a datatype. */
export function modelConfig<T>(entry: CatalogEntry, typeOf: (datatype: string) => T) {
  const { batching, kinds } = entry;
  const inputs = inputsOf(entry);
  const outputs = outputsOf(entry);
  const isStacked = batching !== undefined && inputs.length > 0 &&
    [...inputs, ...outputs].every(({ shape }) => shape.length > 0 && shape[0] === -1);
  const dims = (shape: readonly number[]) => isStacked ? shape.slice(1) : shape;
  return {
    name: entry.name,
    platform: PLATFORM,
    backend: BACKEND,
    version_policy: { all: {} },
    max_batch_size: isStacked ? entry.maxBatch : 0,
    input: inputs.map(({ name, datatype, shape, optional }) => ({
      name,
      data_type: typeOf(datatype),
      dims: dims(shape),
      optional,
    })),
    output: outputs.map(({ name, datatype, shape }) => ({
      name,
      data_type: typeOf(datatype),
      dims: dims(shape),
    })),
    ...kinds.includes("chat") ? { sequence_batching: { direct: {} } } : batching && {
      dynamic_batching: {
        preferred_batch_size: batching.preferred,
        max_queue_delay_microseconds: Math.round(batching.maxDelayMs * 1000),
      },
    },
    model_transaction_policy: { decoupled: !kinds.includes("predict") },
  };
}

// A text where a function declares no tensors but takes a prompt, or a message.
function inputsOf(entry: CatalogEntry): readonly DescribedTensor[] {
  const declared = (entry.input ?? []).map((spec) => describe("INPUT", spec));
  const takesText = hasPrompt(entry) || (declared.length === 0 && entry.kinds.includes("chat"));
  return takesText ? [{ name: TEXT_INPUT, datatype: "BYTES", shape: [1], optional: hasPrompt(entry) }] : declared;
}

function outputsOf(entry: CatalogEntry): readonly DescribedTensor[] {
  if (entry.output) return entry.output.map((spec) => describe("OUTPUT", spec));
  if (entry.kinds.includes("predict")) return [];
  return [{ name: textOutputName(entry), datatype: "BYTES", shape: [1], optional: false }];
}

// Without a shape any is accepted, which the protocol cannot say: the likeliest is one dim.
function describe(direction: "INPUT" | "OUTPUT", { name, dtype, shape, optional }: NamedSpec): DescribedTensor {
  return {
    name: wireName(direction, name),
    datatype: datatypeOf(dtype),
    shape: shape ?? [-1],
    optional: optional === true,
  };
}
