// functions.json: what the host decides per function. User code never grants itself anything.
import { isObject } from "../core/json.ts";
import { nearest } from "../core/nearest.ts";
import {
  checkPermissions,
  formatPermissions,
  pathToUrl,
  type Permissions,
  type Refuse,
  ROOT,
} from "../workers/permissions.ts";
import { ConfigError } from "./error.ts";

/** Where a function runs: in the server's own event loop, in a Web Worker, or in a child process. */
export type Isolation = "inline" | "worker" | "process";

/** What the host decides of one function. */
export interface FunctionSettings {
  /** Where it runs. @default {"worker"} */
  readonly isolation: Isolation;
  /** The host named the level itself, so the supervisor may not move the function to `process`. */
  readonly isolationPinned: boolean;
  /** What the function may do besides reading its own assets. @default {{}} */
  readonly permissions: Permissions;
  /** How many of it run at a time. @default {{ min: 0, max: 1 }}, `min` 1 where it is warm, `max` no less than `min` */
  readonly instances: { readonly min: number; readonly max: number };
  /** Calls that an instance runs at a time. @default {100} */
  readonly concurrency: number;
  /** Calls that wait for an instance. @default {1_000} */
  readonly queue: number;
  /** Milliseconds that an instance gets to start and load. @default {60_000} */
  readonly loadTimeoutMs: number;
  /** Milliseconds that a call gets. @default none */
  readonly callTimeoutMs: number | undefined;
  /** Milliseconds that a call gets to end after its abort, before its instance is ended. @default {2_000} */
  readonly graceMs: number;
  /** Milliseconds without calls after which an instance above `min` ends. @default {300_000} */
  readonly idleMs: number;
  /** The heap of a child process, in MiB; no other level has a bound. @default Deno's */
  readonly heapMb: number | undefined;
  /** Loaded before the server says that it serves. @default {false} */
  readonly warm: boolean;
  /** What of the calls without a version goes to each, as shares of their sum. @default all to one */
  readonly weights: Readonly<Record<string, number>> | undefined;
}

/** What the host decides, by function. */
export interface Manifest {
  /** What it decides of a function; the defaults for one that `functions.json` does not name. */
  readonly settingsOf: (name: string) => FunctionSettings;
}

/** The fields as they are written; `"*"` and a function each have such an entry. */
interface Fields {
  readonly isolation: Isolation;
  readonly permissions: Permissions;
  readonly instances: { readonly min?: number; readonly max?: number };
  readonly concurrency: number;
  readonly queue: number;
  readonly loadTimeoutMs: number;
  readonly callTimeoutMs: number;
  readonly graceMs: number;
  readonly idleMs: number;
  readonly heapMb: number;
  readonly warm: boolean;
  readonly weights: Readonly<Record<string, number>>;
}

type Entry = Partial<Fields>;

/** What a check needs to know: how to refuse, and where paths are meant from. */
interface At {
  readonly refuse: Refuse;
  readonly base: URL;
}

/** Returns the checked value of a field, or throws what is wrong with it. */
type Check<T> = (value: unknown, at: At, field: string) => T;

/** Every level, the least isolated first. */
export const ISOLATION_LEVELS: readonly Isolation[] = ["inline", "worker", "process"];

// What a timer can wait for.
const MAX_MS = 2 ** 31 - 1;

const FIELDS: { readonly [K in keyof Fields]: Check<Fields[K]> } = {
  isolation(value, { refuse }, field) {
    const level = ISOLATION_LEVELS.find((each) => each === value);
    if (level === undefined) throw refuse.value(field, value, '"inline", "worker" or "process"');
    return level;
  },
  permissions: (value, { base, refuse }) => checkPermissions(value, base, refuse),
  instances: readInstances,
  concurrency: integer(1, 1_000_000),
  queue: integer(0, 1_000_000),
  loadTimeoutMs: integer(1, MAX_MS),
  callTimeoutMs: integer(1, MAX_MS),
  graceMs: integer(0, MAX_MS),
  idleMs: integer(1, MAX_MS),
  heapMb: integer(16, 1_048_576),
  warm(value, { refuse }, field) {
    if (typeof value !== "boolean") throw refuse.value(field, value, "true or false");
    return value;
  },
  weights: readWeights,
};

const INSTANCES: { readonly [K in keyof Fields["instances"]]-?: Check<number> } = {
  min: integer(0, 1_000),
  max: integer(1, 1_000),
};

function integer(min: number, max: number): Check<number> {
  return (value, { refuse }, field) => {
    if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
    throw refuse.value(field, value, `an integer from ${min} to ${max}`);
  };
}

function readInstances(value: unknown, at: At, field: string): Fields["instances"] {
  if (!isObject(value)) throw at.refuse.value(field, value, 'an object such as { "min": 0, "max": 2 }');
  const instances = readFields<Fields["instances"]>(value, INSTANCES, at, field);
  const { min, max } = instances;
  if (min !== undefined && max !== undefined && min > max) {
    throw at.refuse.value(field, value, "a min that is at most the max");
  }
  return instances;
}

function readWeights(value: unknown, { refuse }: At, field: string): Fields["weights"] {
  const wanted = 'an object such as { "1": 90, "2": 10 }';
  if (!isObject(value)) throw refuse.value(field, value, wanted);
  const weights = Object.entries(value);
  for (const [version, share] of weights) {
    if (!/^[\w.-]{1,64}$/.test(version)) {
      throw refuse.value(field, value, `${wanted}, with versions of letters, digits, ".", "_" and "-"`);
    }
    if (typeof share !== "number" || !(share >= 0 && share < Infinity)) {
      throw refuse.value(`${field}.${version}`, share, "a number that is not negative");
    }
  }
  if (!weights.some(([, share]) => share !== 0)) throw refuse.value(field, value, "one weight at least over 0");
  return value as Fields["weights"];
}

function readFields<T>(
  value: Readonly<Record<string, unknown>>,
  checks: { readonly [K in keyof T]-?: Check<unknown> },
  at: At,
  within?: string,
): Partial<T> {
  const known = Object.keys(checks);
  return Object.fromEntries(
    Object.entries(value).map(([field, setting]) => {
      if (!known.includes(field)) throw at.refuse.name(within, "field", field, known);
      const path = within === undefined ? field : `${within}.${field}`;
      return [field, checks[field as keyof T](setting, at, path)];
    }),
  ) as Partial<T>;
}

/** What a function may do, for listings. */
export function shownPermissions({ isolation, permissions }: FunctionSettings): string {
  return isolation === "inline" ? "the server's" : formatPermissions(permissions);
}

/** Reads `functions.json` of a folder, which may lack one. Throws `ConfigError`. */
export async function readManifest(folder: URL, names: readonly string[]): Promise<Manifest> {
  const url = new URL("functions.json", folder);
  let text: string;
  try {
    text = await Deno.readTextFile(url);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    text = "{}";
  }
  return parseManifest(text, decodeURIComponent(url.pathname), names);
}

/** Checks the text of a `functions.json`. Throws `ConfigError` naming what is wrong and the nearest right name. */
export function parseManifest(text: string, path: string, names: readonly string[]): Manifest {
  const functions = parseJson(text, path);
  if (!isObject(functions)) throw new ConfigError(`Cannot read ${path}: got ${shown(functions)}, wanted an object`);
  const base = pathToUrl(path, ROOT);
  const entries = new Map<string, Entry>();
  for (const [name, value] of Object.entries(functions)) {
    if (name !== "*" && !names.includes(name)) throw unknown(path, "function", name, [...names, "*"]);
    if (!isObject(value)) {
      throw new ConfigError(`Cannot read ${path}: "${name}" is ${shown(value)}, wanted an object`);
    }
    entries.set(name, readFields<Fields>(value, FIELDS, { refuse: refuseOf(path, name), base }));
  }
  const all = entries.get("*") ?? {};
  for (const [name, own] of entries) checkTogether(own, name === "*" ? undefined : all, refuseOf(path, name));
  return { settingsOf: (name) => resolveSettings(all, name === "*" ? {} : entries.get(name) ?? {}) };
}

// Refuses what would have no effect. The default for all is not to blame where one function differs from it.
function checkTogether(own: Entry, all: Entry | undefined, refuse: Refuse): void {
  if (all === undefined && own.weights) throw refuse.value("weights", own.weights, "the weights of one function");
  const level = all === undefined ? own.isolation : own.isolation ?? all.isolation ?? "worker";
  if (own.permissions && level === "inline") {
    throw refuse.value(
      "permissions",
      own.permissions,
      '"isolation": "worker" or "process" with it: it has no effect on "inline", which may do what the server may',
    );
  }
  // One whose level is not named may be moved to a process.
  const named = own.isolation ?? all?.isolation ?? "process";
  if (own.heapMb !== undefined && named !== "process") {
    throw refuse.value("heapMb", own.heapMb, `"isolation": "process" with it: it has no effect on "${named}"`);
  }
}

function resolveSettings(all: Entry, own: Entry): FunctionSettings {
  const given: Entry = { ...all, ...own };
  const { isolation = "worker", instances = {}, warm = false } = given;
  const min = instances.min ?? Math.min(warm ? 1 : 0, instances.max ?? 1);
  return {
    isolation,
    isolationPinned: given.isolation !== undefined,
    permissions: isolation === "inline" ? {} : given.permissions ?? {},
    instances: { min, max: instances.max ?? Math.max(min, 1) },
    concurrency: given.concurrency ?? 100,
    queue: given.queue ?? 1_000,
    loadTimeoutMs: given.loadTimeoutMs ?? 60_000,
    callTimeoutMs: given.callTimeoutMs,
    graceMs: given.graceMs ?? 2_000,
    idleMs: given.idleMs ?? 300_000,
    heapMb: given.heapMb,
    warm,
    weights: given.weights,
  };
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ConfigError(`Cannot read ${path}: ${(error as Error).message}`);
  }
}

function refuseOf(path: string, name: string): Refuse {
  return {
    value: (field, got, wanted) =>
      new ConfigError(`Cannot read ${path}: "${field}" of "${name}" is ${shown(got)}, wanted ${wanted}`),
    name: (within, kind, got, known) =>
      unknown(`${path}: ${within === undefined ? `"${name}"` : `"${within}" of "${name}"`}`, kind, got, known),
  };
}

function shown(value: unknown): string {
  return JSON.stringify(value).slice(0, 100);
}

function unknown(where: string, kind: string, name: string, known: readonly string[]): ConfigError {
  const [near] = nearest(name, known);
  const hint = near ? `did you mean "${near}"?` : `known are ${known.map((each) => `"${each}"`).join(", ")}`;
  return new ConfigError(`Cannot read ${where}: there is no ${kind} "${name}"; ${hint}`);
}
