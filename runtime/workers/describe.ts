// Reads what functions are, without running them: in a worker that ends then.
import type { ModelDescription } from "../core/define.ts";
import { bootstrapModule } from "./bootstrap.ts";
import { type Described, fromErrorData } from "./messages.ts";
import type { FunctionSource } from "./runner.ts";
import { newestWorkerThread } from "./thread.ts";

/** The options of {@linkcode describeInWorker}. */
export interface DescribeOptions {
  /** To read the functions' files, say. */
  readonly permissions: Deno.PermissionOptions;
  /** What the import of one file may take. */
  readonly timeoutMs: number;
  /** Told of the function whose file never ends: its thread goes on until this process ends. */
  readonly onStuck: (name: string) => void;
}

/** A function's description, or why there is none. */
export type DescribeResult = PromiseSettledResult<ModelDescription>;

/**
 * Describes functions in one worker, as one for each would take a hundred times as long. A function could meddle with
 * those after it; what an instance says of itself when it starts is compared, so that comes out.
 */
export async function describeInWorker(
  sources: readonly FunctionSource[],
  options: DescribeOptions,
): Promise<readonly DescribeResult[]> {
  if (sources.length === 0) return [];
  const module = bootstrapModule("./describe_main.ts", sources);
  const worker = new Worker(module, { type: "module", deno: { permissions: options.permissions } } as WorkerOptions);
  const thread = newestWorkerThread();
  const results: DescribeResult[] = [];
  const ended = Promise.withResolvers<unknown>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const arm = () => {
    clearTimeout(timer);
    timer = setTimeout(
      () => ended.resolve(new Error(`Its file took more than ${options.timeoutMs} ms to be imported`)),
      options.timeoutMs,
    );
  };
  worker.onmessage = ({ data }: MessageEvent<Described>) => {
    results.push(toResult(data));
    if (results.length === sources.length) ended.resolve(undefined);
    else arm();
  };
  worker.onerror = (event) => {
    event.preventDefault(); // it would end this process
    ended.resolve(event.error ?? new Error(event.message));
  };
  arm();
  const reason = await ended.promise;
  clearTimeout(timer);
  worker.terminate();
  const at = results.length;
  if (at === sources.length) return results;
  thread.lingers().then((lingers) => lingers && options.onStuck(sources[at]!.name));
  // The one that ended the worker has failed; those after it had no turn.
  return [...results, { status: "rejected", reason }, ...await describeInWorker(sources.slice(at + 1), options)];
}

function toResult(message: Described): DescribeResult {
  if ("description" in message) return { status: "fulfilled", value: message.description };
  const error = fromErrorData(message.error);
  return { status: "rejected", reason: error.cause ?? error };
}
