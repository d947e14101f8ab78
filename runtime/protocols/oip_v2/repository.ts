// Triton's model repository: what there is, in which state, and loading and unloading it.
import type { CatalogEntry, ModelState } from "../../core/catalog.ts";
import { ModelError, quote } from "../../core/error.ts";
import type { AdapterHost } from "../adapter.ts";
import { entryOf } from "./describe.ts";

// A function that is not loaded can be called, which loads it.
const STATES: Readonly<Record<ModelState, readonly [state: string, reason: string]>> = {
  registered: ["READY", "not loaded: its first call loads it"],
  ready: ["READY", ""],
  loading: ["LOADING", ""],
  draining: ["UNLOADING", ""],
  unloaded: ["UNAVAILABLE", "unloaded"],
  failed: ["UNAVAILABLE", "it cannot be loaded; the server's log says why"],
};

/** Whether a function can be called. */
export function isReady(host: AdapterHost, name: string, version: string): boolean {
  const entry = entryOf(host.catalog, name, version);
  return version === "" ? host.health.status(name) === "serving" : STATES[entry.state][0] === "READY";
}

/** The rows of `RepositoryIndexResponse`. */
export function repositoryIndex({ catalog }: AdapterHost, readyOnly: boolean) {
  return [...catalog.list()].map(rowOf).filter(({ state }) => !readyOnly || state === "READY");
}

function rowOf({ name, version, state }: CatalogEntry) {
  const [row, reason] = STATES[state];
  return { name, version, state: row, reason };
}

/** Loads every version of a function. Rejects where that fails. */
export async function loadModel(host: AdapterHost, name: string, parameters: Iterable<string>): Promise<void> {
  entryOf(host.catalog, name, "");
  for (const parameter of parameters) {
    throw new ModelError(
      "invalid_argument",
      `Cannot load with parameter ${quote(parameter)}: a function is what its file says`,
    );
  }
  await host.repository.load(name);
}

/** Takes every version of a function out of service: calls in progress finish, new ones are refused. */
export function unloadModel(host: AdapterHost, name: string): void {
  entryOf(host.catalog, name, "");
  host.repository.unload(name);
}
