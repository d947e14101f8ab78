// What a supervisor and the server's process that it runs say to each other, and what they say of a server.
import type { CallKind } from "../core/call.ts";
import type { ModelState } from "../core/catalog.ts";
import type { LogLevel } from "../core/log.ts";
import type { LogFormat } from "./log_format.ts";
import type { Isolation } from "./manifest.ts";

// As serve.ts has it, which needs this module.
type ServerState = "starting" | "ready" | "draining" | "stopped";

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
}

/** A server as `list` shows it. */
export interface ServerStatus {
  readonly version: string;
  /** `host:port`. */
  readonly address: string;
  readonly state: ServerState;
  readonly functions: readonly FunctionStatus[];
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
  /** A process ended while it imported functions' files: each is to be imported in a process of its own. */
  readonly isCareful: boolean;
}

/** What a supervisor says to the server's process. */
export type ToChild =
  | Start
  | { readonly type: "retire"; readonly drainMs: number }
  | { readonly type: "shutdown"; readonly now?: StopSignal }
  | { readonly type: "reload" }
  /** Is it still there? */
  | { readonly type: "ping" }
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
  /** Files of functions are being imported, or no more. */
  | { readonly type: "describing"; readonly active: boolean }
  | { readonly type: "pong" }
  | { readonly type: "status"; readonly status: ServerStatus };

/** What a server says of itself. */
export function statusOf(
  server: {
    readonly addresses: { readonly grpc: Deno.NetAddr };
    readonly state: ServerState;
    status(): readonly FunctionStatus[];
  },
  version: string,
): ServerStatus {
  return {
    version,
    address: formatAddress(server.addresses.grpc),
    state: server.state,
    functions: server.status(),
  };
}

/** `host:port`. */
export function formatAddress({ hostname, port }: { readonly hostname: string; readonly port: number }): string {
  return `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}
