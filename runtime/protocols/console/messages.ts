// What the console's pages and its API say to each other, in JSON. The pages are checked against these types too.
import type { ActivityCounts } from "../../core/activity.ts";
import type { CallKind } from "../../core/call.ts";
import type { ModelState } from "../../core/catalog.ts";
import type { DType } from "../../core/dtype.ts";
import type { NamedSpec, ParamSpecs } from "../../core/spec.ts";
import type { Shape } from "../../core/tensor.ts";

/** A version of a function. */
export interface FunctionJson {
  readonly name: string;
  readonly version: string;
  /** Whether calls without a version go to it. */
  readonly isDefault: boolean;
  readonly description?: string | undefined;
  readonly state: ModelState;
  readonly kinds: readonly CallKind[];
  /** Undefined = untyped. */
  readonly input?: readonly NamedSpec[] | undefined;
  /** Undefined = untyped. */
  readonly output?: readonly NamedSpec[] | undefined;
  /** Undefined = any texts. */
  readonly params?: ParamSpecs | undefined;
}

/** Everything that is served. */
export interface CatalogJson {
  /** The port of the gRPC listener, which is on the host that serves the page; null = there is none. */
  readonly grpcPort: number | null;
  /** Which of the server's processes this is, from 1, and how many there are. */
  readonly process: number;
  readonly processes: number;
  /** By name, the newest version first. */
  readonly functions: readonly FunctionJson[];
}

/** What all functions, or one, have done. */
export interface CountsJson extends ActivityCounts {
  readonly inFlight: number;
}

/** What this process has done since it started. */
export interface ActivityJson extends CountsJson {
  readonly rssBytes: number;
  /** By name; those that were called. */
  readonly functions: Readonly<Record<string, CountsJson>>;
}

/** An event of `/console/api/events`: one each second; the catalog where it has changed. */
export interface FeedEvent {
  readonly activity: ActivityJson;
  readonly catalog?: CatalogJson;
}

/** An element: a number or "NaN", "Infinity", "-Infinity"; of int64 and uint64 a text, of bytes one in base64. */
export type JsonElement = number | string | boolean;

/** A tensor in JSON. */
export interface JsonTensor {
  /** As in specs. */
  readonly dtype: DType;
  /** The dims. */
  readonly shape: Shape;
  /** Row-major, flat. */
  readonly data: readonly JsonElement[];
}

/** A tensor that the page sends: elements of a fixed size may come as bytes, little-endian. */
export type SentTensor = JsonTensor | { readonly dtype: DType; readonly shape: Shape; readonly base64: string };

/** The answer of a predict. */
export interface PredictJson {
  readonly outputs: Readonly<Record<string, JsonTensor>>;
  readonly version: string;
  readonly latencyMs: number;
  readonly requestId: string;
}

/** What a stream tells, one JSON object an event. The last one is `done` or `error`. */
export type StreamEvent =
  | { readonly type: "token"; readonly text: string }
  | { readonly type: "tensors"; readonly outputs: Readonly<Record<string, JsonTensor>> }
  | { readonly type: "done"; readonly ms: number }
  | { readonly type: "error"; readonly code: string; readonly message: string };
