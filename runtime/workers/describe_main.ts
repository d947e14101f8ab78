// What runs in a worker that only tells what functions are.
import { describeModel } from "../core/define.ts";
import { toModelError } from "../core/error.ts";
import { importFunctionFile } from "./function_file.ts";
import { type Described, toErrorData } from "./messages.ts";
import { type FunctionSource, modelOf } from "./runner.ts";

/** Imports functions one after the other and tells what they are. */
export async function start(sources: readonly FunctionSource[]): Promise<void> {
  const scope = globalThis as unknown as Worker & { close(): void };
  const post = scope.postMessage.bind(scope);
  // What a function's file starts and does not wait for is its own affair.
  scope.addEventListener("error", (event) => event.preventDefault());
  scope.addEventListener("unhandledrejection", (event) => event.preventDefault());
  for (const source of sources) {
    let message: Described;
    try {
      message = { description: describeModel(modelOf(await importFunctionFile(source.base), source)) };
    } catch (error) {
      message = { error: toErrorData(toModelError(error, "none")) };
    }
    post(message);
  }
}
