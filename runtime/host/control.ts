// What a supervisor and the server's process that it runs say to each other, and what they say of a server.
import type { CallKind } from "../core/call.ts";
import type { Catalog, ModelState } from "../core/catalog.ts";
import type { LogLevel } from "../core/log.ts";
import type { LogFormat } from "./log_format.ts";

// As serve.ts has it, which needs this module.
type ServerState = "starting" | "ready" | "draining" | "stopped";

/** Where a function's code runs. */
export type Isolation = "inline" | "worker" | "process";

/** What is decided of a function that has ended server processes. */
export interface Verdict {
  /** To be run in a process of its own, where its settings allow it. */
  readonly isolation?: "process";
  /** Not to be run any more, where its settings do not allow a process of its own. */
  readonly failed?: true;
  /** For the log and for health. */
  readonly why: string;
  /** The files that the verdict is about, as {@linkcode Fingerprints} has them. */
  readonly fingerprint?: string;
}

/** Verdicts by function. */
export type Verdicts = Readonly<Record<string, Verdict>>;

/** What tells a function's files from other ones, by function. */
export type Fingerprints = Readonly<Record<string, string>>;

/** A function as `list` shows it. */
export interface FunctionStatus {
  readonly name: string;
  readonly version: string;
  /** Counts its reloads. */
  readonly revision: number;
  readonly state: ModelState;
  readonly isolation: Isolation;
  readonly permissions: string;
  readonly instances: number;
  readonly maxInstances: number;
  /** Instances with a call in progress. */
  readonly busy: number;
  /** Calls that wait for an instance. */
  readonly queued: number;
  readonly kinds: readonly CallKind[];
}

/** A server as `list` shows it. */
export interface ServerStatus {
  readonly version: string;
  /** `host:port`. */
  readonly address: string;
  readonly state: ServerState;
  readonly functions: readonly FunctionStatus[];
}

/** What a supervised process needs of its server. */
export interface SupervisedServer {
  readonly addresses: { readonly grpc: Deno.NetAddr };
  readonly state: ServerState;
  readonly functions: Catalog;
  readonly ready: Promise<void>;
  readonly finished: Promise<void>;
  /** Called again, it no longer waits. */
  shutdown(options?: { readonly graceMs?: number }): Promise<void>;
  /** Looks at the folder of functions again. */
  reload?(): Promise<void>;
  status?(): readonly FunctionStatus[];
  /** Functions with calls in flight for more than about 100 ms. */
  busy?(): readonly string[];
  /** Resolves when a worker cannot be ended. */
  readonly unfit?: Promise<{ readonly function: string }>;
}

/** What the supervisor has to know of the configuration, which only its child reads. */
export interface Settings {
  readonly hostname: string;
  /** 0 = any. */
  readonly port: number;
  readonly graceMs: number;
  readonly drainMs: number;
  readonly logFormat: LogFormat;
  readonly logLevel: LogLevel;
}

/** The environment variable that tells a process that it has a supervisor. */
export const SUPERVISED = "TENSORLET_SUPERVISED";

/** The signals that end a server, with the statuses that a second one gives. */
export const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const;

/** A signal that ends a server. */
export type StopSignal = keyof typeof SIGNALS;

/** To listen, at last: the answer to `hello`. */
export interface Start {
  readonly type: "start";
  readonly port: number;
  readonly reusePort: boolean;
  /** Whether nothing was served before: it has to say what it serves. */
  readonly first: boolean;
  readonly verdicts: Verdicts;
}

/** What a supervisor says to the server's process. */
export type ToChild =
  | Start
  | { readonly type: "retire"; readonly drainMs: number }
  | { readonly type: "shutdown"; readonly now?: StopSignal }
  | { readonly type: "reload" }
  | { readonly type: "status" };

/** What the server's process says to its supervisor. */
export type FromChild =
  | { readonly type: "hello"; readonly settings: Settings }
  | { readonly type: "listening"; readonly port: number }
  | { readonly type: "ready" }
  | { readonly type: "files"; readonly fingerprints: Fingerprints }
  | { readonly type: "busy"; readonly functions: readonly string[] }
  | { readonly type: "unfit"; readonly function: string }
  | { readonly type: "changed"; readonly function: string }
  | { readonly type: "signal"; readonly signal: StopSignal }
  | { readonly type: "status"; readonly status: ServerStatus };

/** What a server says of its functions, with what a catalog knows where it says nothing. */
export function statusOf(server: SupervisedServer, version: string): ServerStatus {
  const functions = server.status?.() ?? [...server.functions.list()].map((entry): FunctionStatus => ({
    name: entry.name,
    version: entry.version,
    revision: 0,
    state: entry.state,
    isolation: "inline",
    permissions: "the server's",
    instances: entry.state === "ready" ? 1 : 0,
    maxInstances: 1,
    busy: 0,
    queued: 0,
    kinds: entry.kinds,
  }));
  return { version, address: formatAddress(server.addresses.grpc), state: server.state, functions };
}

/** `host:port`. */
export function formatAddress({ hostname, port }: { readonly hostname: string; readonly port: number }): string {
  return `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}
