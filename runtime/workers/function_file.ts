// Imports a function's file with the permissions of this worker or process. A literal import would load it, and all that
// it imports, with those of whoever started this: any file, by `with { type: "text" }`.
import "../../mod.ts"; // functions import it: once it is here that needs no permission

/** A function's file as a module. */
export interface FunctionModule {
  readonly default?: unknown;
}

/** Imports a function's file. */
export function importFunctionFile(url: string): Promise<FunctionModule> {
  // The server may use it, and Deno lets anybody who may have a database of their own, whatever the permissions.
  delete (Deno as Partial<typeof Deno>).openKv;
  return import(url);
}
