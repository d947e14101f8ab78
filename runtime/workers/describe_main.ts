// What runs in a worker that only tells what functions are.
import { describeModel, type ModelDescription } from "../core/define.ts";
import { toModelError } from "../core/error.ts";
import { type ErrorData, toErrorData } from "./messages.ts";
import { type FunctionSource, modelOf } from "./runner.ts";

/** What a function is, or why that cannot be told; in the order of the functions. */
export type Described =
  | { readonly description: ModelDescription }
  | { readonly error: ErrorData };

/** Imports functions one after the other and tells what they are. */
export async function start(
  sources: readonly FunctionSource[],
  importers: readonly (() => Promise<{ readonly default?: unknown }>)[],
): Promise<void> {
  const scope = globalThis as unknown as Worker & { close(): void };
  const post = scope.postMessage.bind(scope);
  // What a function's file starts and does not wait for is its own affair.
  scope.addEventListener("error", (event) => event.preventDefault());
  scope.addEventListener("unhandledrejection", (event) => event.preventDefault());
  for (const [i, importModule] of importers.entries()) {
    let message: Described;
    try {
      message = { description: describeModel(modelOf(await importModule(), sources[i]!)) };
    } catch (error) {
      message = { error: toErrorData(toModelError(error, "none")) };
    }
    post(message);
  }
}
