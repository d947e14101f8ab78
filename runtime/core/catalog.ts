import type { CallKind } from "./call.ts";
import type { Batching } from "./define.ts";
import { ModelError, quote } from "./error.ts";
import { nearest } from "./nearest.ts";
import type { NamedSpec, ParamSpecs } from "./spec.ts";

/** Where a function is in its life. */
export type ModelState = "registered" | "loading" | "ready" | "draining" | "unloaded" | "failed";

/** What protocols and listings may know of a function. */
export interface CatalogEntry {
  /** What callers ask for. */
  readonly name: string;
  /** What callers may ask for as `name@version`. */
  readonly version: string;
  /** One line about it. */
  readonly description: string | undefined;
  /** Undefined = untyped. */
  readonly input: readonly NamedSpec[] | undefined;
  /** Undefined = untyped. */
  readonly output: readonly NamedSpec[] | undefined;
  /** Undefined = any texts. */
  readonly params: ParamSpecs | undefined;
  /** What it can answer, fallbacks included. */
  readonly kinds: readonly CallKind[];
  /** The most items of one batch. */
  readonly maxBatch: number;
  /** How single requests are gathered; undefined = they are not. */
  readonly batching: Batching | undefined;
  /** Where it is in its life. */
  readonly state: ModelState;
  /** Which load of it this is; a reload makes a new one. */
  readonly revision: number;
}

/** The functions that are served. */
export interface Catalog {
  /** Every function, by name, the newest version first. */
  list(): Iterable<CatalogEntry>;
  /** Without `version` the default one. */
  get(name: string, version?: string): CatalogEntry | undefined;
  /** The version that is to answer a call that names none: the default one, or one by weight. */
  route(name: string): CatalogEntry | undefined;
}

/**
 * The function that a caller named: `name`, `name@version`, or "" where exactly one can answer `kind`.
 *
 * Throws `invalid_argument`, `not_found` or `unimplemented`.
 */
export function findEntry(catalog: Catalog, requested: string, kind: CallKind, field: string): CatalogEntry {
  const entry = requested === "" ? defaultEntry(catalog, kind, field) : findNamedEntry(catalog, requested);
  if (!entry.kinds.includes(kind)) throw unimplemented(entry.name, kind);
  return entry;
}

/** The function that a caller named, whatever it can answer; throws `not_found`, or `unavailable` for a broken file. */
export function findNamedEntry(catalog: Catalog, requested: string): CatalogEntry {
  const entry = namedEntry(catalog, requested);
  if (entry.state !== "failed" || entry.kinds.length > 0) return entry;
  throw new ModelError("unavailable", `Function "${entry.name}" cannot be loaded; the server's log says why`);
}

/** A function has neither the handler for a kind of call nor a fallback. */
export function unimplemented(name: string, kind: CallKind): ModelError {
  return new ModelError("unimplemented", `Function "${name}" has no ${kind} handler, nor one that can stand in for it`);
}

function defaultEntry(catalog: Catalog, kind: CallKind, field: string): CatalogEntry {
  const able = [...catalog.list()].filter((entry) => entry.kinds.includes(kind));
  const names = new Set(able.map((entry) => entry.name));
  if (names.size === 1) {
    const routed = catalog.route(able[0]!.name);
    return routed && able.includes(routed) ? routed : able[0]!; // the newest version comes first
  }
  throw new ModelError(
    "invalid_argument",
    able.length === 0
      ? `Cannot choose a model: ${field} is empty and no function has a ${kind} handler`
      : `Cannot choose a model: ${field} is empty, wanted one of ${listNames(names)}`,
  );
}

/** `name` or `name@version` as its parts. */
export function splitVersion(requested: string): readonly [name: string, version: string | undefined] {
  const at = requested.lastIndexOf("@");
  return at > 0 ? [requested.slice(0, at), requested.slice(at + 1)] : [requested, undefined];
}

function namedEntry(catalog: Catalog, requested: string): CatalogEntry {
  const [name, version] = splitVersion(requested);
  const entry = version === undefined ? catalog.route(name) : catalog.get(name, version);
  if (entry) return entry;
  throw unknownModel([...catalog.list()], requested);
}

/** Nobody is called `requested`; says which versions there are, or the nearest names. */
export function unknownModel(
  known: readonly Pick<CatalogEntry, "name" | "version">[],
  requested: string,
): ModelError {
  const [name, version] = splitVersion(requested);
  const versions = known.filter((other) => other.name === name).map((other) => other.version);
  if (version !== undefined && versions.length > 0) {
    return new ModelError(
      "not_found",
      `Model ${quote(name)} has no version ${quote(version)}, only ${listNames(versions)}`,
    );
  }
  const near = nearest(name, [...new Set(known.map((other) => other.name))]);
  const hint = near.length > 0 ? `; the nearest ${near.length > 1 ? "names are" : "name is"} ${listNames(near)}` : "";
  return new ModelError("not_found", `There is no model ${quote(requested)}${hint}`);
}

function listNames(names: Iterable<string>): string {
  const all = [...names];
  const shown = all.slice(0, 20).map((name) => quote(name));
  return all.length > 20 ? `${shown.join(", ")}, ...` : shown.join(", ");
}
