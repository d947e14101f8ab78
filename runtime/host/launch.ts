// How a function of a folder is described and started, at the level that the host chose for it.
import { mapConcurrently } from "../core/concurrent.ts";
import type { ModelDescription, ResolvedModel } from "../core/define.ts";
import { ModelError } from "../core/error.ts";
import type { Logger } from "../core/log.ts";
import { inlineLauncher } from "../workers/inline.ts";
import type { Launch } from "../workers/instance.ts";
import { permissionHint, toFlags, toWorkerPermissions } from "../workers/permissions.ts";
import { describeInProcess, processLauncher, type ProcessOptions } from "../workers/process.ts";
import { describeInWorker } from "../workers/describe.ts";
import type { FunctionSource } from "../workers/runner.ts";
import { workerLauncher } from "../workers/worker.ts";
import { importFunction } from "./loader.ts";
import { projectConfig } from "./deno_config.ts";
import type { Isolation } from "./manifest.ts";
import type { FoundFunction } from "./scan.ts";

/** What a launcher tells of. */
export interface LaunchEvents {
  readonly log: Logger;
  /** A worker of the function cannot be ended. */
  readonly onStuck: () => void;
  /** The file is no longer what it was when it was described. */
  readonly onDrift: () => void;
}

/** What the import of one file may take; the server starts to listen after it. */
const DESCRIBE_TIMEOUT_MS = 10_000;

/** Processes that describe at the same time: all at once they would take each other's time to start. */
const MAX_PROCESSES = 2 * navigator.hardwareConcurrency;

/** What a function is (an inline one is imported), or why that cannot be told. */
export type Described = PromiseSettledResult<ModelDescription | ResolvedModel>;

/** The options of {@linkcode describeFunctions}. */
export interface DescribeFunctionsOptions {
  readonly log: Logger;
  /** A worker of the function cannot be ended. */
  readonly onStuck: (name: string) => void;
  /** Imports each file in a process of its own: one of them has ended the server's. */
  readonly isCareful?: boolean;
  /** How often the folder was reloaded: what was imported before is imported anew. */
  readonly reloads: number;
}

/** Reads what functions are without running them. */
export async function describeFunctions(
  functions: readonly FoundFunction[],
  options: DescribeFunctionsOptions,
): Promise<Map<FoundFunction, Described>> {
  const described = new Map<FoundFunction, Described>();
  const levelOf = ({ settings: { isolation } }: FoundFunction): Isolation =>
    isolation === "worker" && options.isCareful ? "process" : isolation;
  const at = (level: Isolation) => functions.filter((found) => levelOf(found) === level);
  // A share for each processor.
  const workers = at("worker");
  const share = Math.ceil(workers.length / navigator.hardwareConcurrency);
  const shares = Array.from(
    { length: navigator.hardwareConcurrency },
    (_, i) => workers.slice(i * share, (i + 1) * share),
  );
  await Promise.all([
    ...at("inline").map(async (found) => {
      const [result] = await Promise.allSettled([importFunction(found, options.reloads)]);
      described.set(found, result!);
    }),
    mapConcurrently(at("process"), MAX_PROCESSES, async (found) => {
      const [result] = await Promise.allSettled([
        describeInProcess(processOptions(found, options.log), DESCRIBE_TIMEOUT_MS),
      ]);
      described.set(found, result!);
    }),
    ...shares.map(async (part) => {
      const results = await describeInWorker(part.map(sourceOf), {
        permissions: toWorkerPermissions({}, part.flatMap(({ assets }) => assets)),
        timeoutMs: DESCRIBE_TIMEOUT_MS,
        onStuck: options.onStuck,
      });
      for (const [i, found] of part.entries()) described.set(found, await permitted(found, results[i]!, options));
    }),
  ]);
  return described;
}

// One that needs a permission to be imported is imported with those that it is granted.
async function permitted(
  found: FoundFunction,
  result: Described,
  { log, onStuck }: DescribeFunctionsOptions,
): Promise<Described> {
  if (result.status === "fulfilled" || permissionHint(result.reason, found.name) === undefined) return result;
  const explained = ({ reason }: PromiseRejectedResult): Described => {
    return { status: "rejected", reason: explainCause(reason, found.name) };
  };
  if (Object.keys(found.settings.permissions).length === 0) return explained(result);
  log.warn("It cannot be described without permissions: what needs them belongs into load()", {
    model: found.name,
    cause: result.reason,
  });
  const permissions = toWorkerPermissions(found.settings.permissions, found.assets);
  const [again] = await describeInWorker([sourceOf(found)], { permissions, timeoutMs: DESCRIBE_TIMEOUT_MS, onStuck });
  return again!.status === "rejected" ? explained(again!) : again!;
}

/** Starts instances of a function. */
export function launcherOf(
  found: FoundFunction,
  model: ModelDescription | ResolvedModel,
  events: LaunchEvents,
): Launch {
  const { settings, assets } = found;
  if ("handlers" in model) return inlineLauncher(model, { base: found.url, log: events.log });
  const options = {
    ...remoteOptions(found, events.log),
    onDescribed(description: ModelDescription) {
      if (JSON.stringify(description) === JSON.stringify(model)) return;
      events.onDrift();
      throw new ModelError("unavailable", `The file of function "${found.name}" has changed; it is loaded anew`, {
        details: { retryAfterMs: 100 },
      });
    },
  };
  if (settings.isolation === "process") {
    return processLauncher({ ...processOptions(found, events.log), ...options });
  }
  const permissions = toWorkerPermissions(settings.permissions, assets);
  return workerLauncher({ ...options, permissions, onStuck: events.onStuck });
}

function processOptions(found: FoundFunction, log: Logger): ProcessOptions {
  const { settings, assets, url } = found;
  const config = projectConfig(url);
  return {
    ...remoteOptions(found, log),
    flags: toFlags(settings.permissions, assets),
    heapMb: settings.heapMb,
    ...config !== undefined && { config },
  };
}

function remoteOptions(found: FoundFunction, log: Logger) {
  const { name, version, url: file } = found;
  return { name, version, file, log, explain: (error: ModelError) => explain(error, name) };
}

function sourceOf({ name, version, url }: FoundFunction): FunctionSource {
  return { name, version, base: url.href };
}

function explain(error: ModelError, name: string): ModelError {
  const { code, message, details } = error;
  return new ModelError(code, message, { ...details && { details }, cause: explainCause(error.cause, name) });
}

// Deno's text names a flag of the command line, which is not where the host grants permissions.
function explainCause(cause: unknown, name: string): unknown {
  const hint = permissionHint(cause, name);
  return hint === undefined ? cause : Object.assign(new Error(hint, { cause }), { name: "PermissionDenied" });
}
