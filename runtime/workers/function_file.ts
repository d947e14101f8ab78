// Imports a function's file with the permissions of this worker or process. A literal import would load it, and all that
// it imports, with those of whoever started this: any file, by `with { type: "text" }`.
import "../../mod.ts"; // functions import it: once it is here that needs no permission

/** A function's file as a module. */
export interface FunctionModule {
  readonly default?: unknown;
}

/** Imports a function's file. */
export function importFunctionFile(url: string): Promise<FunctionModule> {
  return import(url);
}
