// What a server says of itself: each of its processes, and all of them in one view.
import type { CallKind } from "../core/call.ts";
import type { ModelState } from "../core/catalog.ts";
import type { NamedSpec, ParamSpecs } from "../core/spec.ts";
import { formatAddress } from "./address.ts";
import type { Isolation } from "./manifest.ts";

// As serve.ts has it, which needs this module.
type ServerState = "starting" | "ready" | "draining" | "stopped";

/** A function as `list` shows it. */
export interface FunctionStatus {
  /** What callers ask for. */
  readonly name: string;
  /** What callers may ask for as `name@version`. */
  readonly version: string;
  /** Which load of it this is; a reload makes a new one. */
  readonly revision: number;
  /** Where it is in its life. */
  readonly state: ModelState;
  /** Where its code runs. */
  readonly isolation: Isolation;
  /** What it may do, in short. */
  readonly permissions: string;
  /** Copies of it that run. */
  readonly instances: number;
  /** The most copies that may run. */
  readonly maxInstances: number;
  /** Calls in progress. */
  readonly busy: number;
  /** Calls that wait for an instance. */
  readonly queued: number;
  /** What it can answer. */
  readonly kinds: readonly CallKind[];
  /** One line about it. */
  readonly description?: string | undefined;
  /** What it takes. Undefined = any tensors. */
  readonly input?: readonly NamedSpec[] | undefined;
  /** What it gives. Undefined = any tensors. */
  readonly output?: readonly NamedSpec[] | undefined;
  /** Undefined = any texts. */
  readonly params?: ParamSpecs | undefined;
}

/** A function in all processes: numbers are sums, the revision is the largest. */
export interface MergedFunction extends FunctionStatus {
  /** Where it is least far. */
  readonly state: ModelState;
  /** In how many processes it is in which state, where they differ. */
  readonly states?: Readonly<Partial<Record<ModelState, number>>>;
}

/** What has come and gone; the sum, of several processes. */
export interface Counters {
  /** Calls since the start of the process. */
  readonly callsStarted: number;
  /** Those of them that have ended, in whatever way. */
  readonly callsFinished: number;
  /** Those that ended in a failure; a client that left is none. */
  readonly callsFailed: number;
  /** Chat sessions. */
  readonly sessions: number;
  /** Memory, in bytes, workers included. */
  readonly rssBytes: number;
}

/** A process of a server. */
export interface ProcessStatus extends Counters {
  readonly version: string;
  readonly pid: number;
  /** Its place among the server's processes, from 1. */
  readonly process: number;
  /** `host:port`. */
  readonly address: string;
  readonly state: ServerState;
  readonly functions: readonly FunctionStatus[];
}

/** A server as `list` shows it: all of its processes in one. */
export interface ServerStatus extends Counters {
  readonly version: string;
  /** `host:port`. */
  readonly address: string;
  /** Where it is least far; "starting" where one of its processes does not answer. */
  readonly state: ServerState;
  readonly functions: readonly MergedFunction[];
  readonly processes: readonly ProcessStatus[];
}

/** A server as its status needs it. */
interface Observed {
  readonly addresses: { readonly grpc: Deno.NetAddr };
  readonly state: ServerState;
  status(): readonly FunctionStatus[];
  counters(): Counters;
}

/** What this process says of its server. */
export function statusOf(server: Observed, version: string, place = 1): ProcessStatus {
  return {
    version,
    pid: Deno.pid,
    process: place,
    address: formatAddress(server.addresses.grpc),
    state: server.state,
    ...server.counters(),
    functions: server.status(),
  };
}

/** The least far first. */
const SERVER_STATES: readonly ServerState[] = ["starting", "stopped", "draining", "ready"];
const MODEL_STATES: readonly ModelState[] = ["failed", "loading", "unloaded", "draining", "registered", "ready"];

/** One view of those of a server's `count` processes that have answered; undefined where none has. */
export function mergeStatuses(processes: readonly ProcessStatus[], count: number): ServerStatus | undefined {
  const [first] = processes;
  if (!first) return undefined;
  const functions = Map.groupBy(
    processes.flatMap((each) => each.functions),
    ({ name, version }) => `${name}@${version}`,
  );
  const sum = (key: keyof Counters) => sumOf(processes, key);
  return {
    version: first.version,
    address: first.address,
    state: processes.length < count ? "starting" : leastOf(SERVER_STATES, processes),
    callsStarted: sum("callsStarted"),
    callsFinished: sum("callsFinished"),
    callsFailed: sum("callsFailed"),
    sessions: sum("sessions"),
    rssBytes: sum("rssBytes"),
    functions: [...functions.values()].map(mergeFunctions),
    processes,
  };
}

function mergeFunctions(same: readonly FunctionStatus[]): MergedFunction {
  const states = Object.fromEntries(
    [...Map.groupBy(same, ({ state }) => state)].map(([state, { length }]) => [state, length]),
  );
  return {
    ...same[0]!,
    revision: Math.max(...same.map(({ revision }) => revision)),
    state: leastOf(MODEL_STATES, same),
    ...Object.keys(states).length > 1 && { states },
    instances: sumOf(same, "instances"),
    maxInstances: sumOf(same, "maxInstances"),
    busy: sumOf(same, "busy"),
    queued: sumOf(same, "queued"),
  };
}

function sumOf<K extends string>(items: readonly Readonly<Record<K, number>>[], key: K): number {
  return items.reduce((sum, item) => sum + item[key], 0);
}

function leastOf<S>(order: readonly S[], items: readonly { readonly state: S }[]): S {
  return order.find((state) => items.some((item) => item.state === state))!;
}
