// What a supervisor and the server's processes that it runs say to each other.
import type { LogLevel } from "../core/log.ts";
import type { LogFormat } from "./log_format.ts";
import type { ProcessStatus } from "./status.ts";

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

/** What the supervisor has to know of the configuration, which only its child reads. */
export interface Settings {
  readonly hostname: string;
  /** 0 = any. */
  readonly port: number;
  /** For HTTP; 0 = any, undefined = none. */
  readonly httpPort: number | undefined;
  /** It is not the default, so it has to be had. */
  readonly hasChosenHttpPort: boolean;
  /** How many processes are to serve. */
  readonly processes: number;
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

/**
 * What a process is to its server: the first one says what is served, further ones only join it; a replacement says that
 * it serves again.
 */
export type Role = "first" | "further" | "replacement";

/** To listen, at last: the answer to `hello`. */
export interface Start {
  readonly type: "start";
  readonly port: number;
  /** Without: no HTTP. */
  readonly httpPort?: number;
  readonly reusePort: boolean;
  readonly role: Role;
  /** Its place among the server's processes, from 1. */
  readonly place: number;
  /** Processes that died in that place before. */
  readonly restarts: number;
  /** A private folder for what the server's processes share, where there are several. */
  readonly folder?: string;
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
  | { readonly type: "listening"; readonly port: number; readonly httpPort?: number }
  /** `failed`: the functions that cannot be called. */
  | { readonly type: "ready"; readonly failed: readonly string[] }
  | { readonly type: "files"; readonly fingerprints: Fingerprints }
  | { readonly type: "busy"; readonly functions: readonly string[] }
  | { readonly type: "unfit"; readonly function: string }
  | { readonly type: "changed"; readonly function: string }
  /** What had changed is deployed. */
  | { readonly type: "reloaded" }
  /** Files of functions are being imported, or no more. */
  | { readonly type: "describing"; readonly active: boolean }
  | { readonly type: "pong" }
  | { readonly type: "status"; readonly status: ProcessStatus };
