// functions.json: what the host decides per function. User code never grants itself anything.
import { nearest } from "../core/nearest.ts";
import { ConfigError } from "./error.ts";

/** What the host decides of one function. */
export interface FunctionSettings {
  /** Loaded before the server says that it serves. */
  readonly warm: boolean;
}

/** What the host decides, by function; `ignored` are fields that have no effect yet. */
export interface Manifest {
  readonly settingsOf: (name: string) => FunctionSettings;
  readonly ignored: readonly string[];
}

const FIELDS = [
  "warm",
  "isolation",
  "permissions",
  "instances",
  "concurrency",
  "queue",
  "loadTimeoutMs",
  "callTimeoutMs",
  "graceMs",
  "idleMs",
  "heapMb",
  "weights",
];

/** Reads `functions.json` of a folder, which may lack one. Throws `ConfigError`. */
export async function readManifest(folder: URL, names: readonly string[]): Promise<Manifest> {
  const url = new URL("functions.json", folder);
  const path = decodeURIComponent(url.pathname);
  let text: string;
  try {
    text = await Deno.readTextFile(url);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return { settingsOf: () => ({ warm: false }), ignored: [] };
    throw error;
  }
  return parseManifest(text, path, names);
}

/** Checks the text of a `functions.json`. Throws `ConfigError` naming what is wrong and the nearest right name. */
export function parseManifest(text: string, path: string, names: readonly string[]): Manifest {
  const functions = objectOf(parseJson(text, path), path);
  const ignored: string[] = [];
  for (const [name, value] of Object.entries(functions)) {
    if (name !== "*" && !names.includes(name)) throw unknown(path, "function", name, [...names, "*"]);
    for (const [field, setting] of Object.entries(objectOf(value, `${path}: "${name}"`))) {
      if (!FIELDS.includes(field)) throw unknown(`${path}: "${name}"`, "field", field, FIELDS);
      if (field !== "warm") ignored.push(`"${field}" of "${name}"`);
      else if (typeof setting !== "boolean") {
        throw new ConfigError(
          `Cannot read ${path}: "warm" of "${name}" is ${JSON.stringify(setting)}, wanted true or false`,
        );
      }
    }
  }
  const settings = functions as Record<string, { readonly warm?: boolean } | undefined>;
  return {
    ignored,
    settingsOf: (name) => ({ warm: settings[name]?.warm ?? settings["*"]?.warm ?? false }),
  };
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ConfigError(`Cannot read ${path}: ${(error as Error).message}`);
  }
}

function objectOf(value: unknown, where: string): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new ConfigError(`Cannot read ${where}: got ${JSON.stringify(value)?.slice(0, 100)}, wanted an object`);
}

function unknown(where: string, kind: string, name: string, known: readonly string[]): ConfigError {
  const [near] = nearest(name, known);
  const hint = near ? `did you mean "${near}"?` : `known are ${known.map((each) => `"${each}"`).join(", ")}`;
  return new ConfigError(`Cannot read ${where}: there is no ${kind} "${name}"; ${hint}`);
}
