// Imports a function's file with the permissions of this worker or process. A literal import would load it, and all that
// it imports, with those of whoever started this: any file, by `with { type: "text" }`.
import "../../mod.ts"; // functions import it: once it is here that needs no permission

/** A function's file as a module. */
export interface FunctionModule {
  readonly default?: unknown;
}

/** Imports a function's file. */
export function importFunctionFile(url: string): Promise<FunctionModule> {
  // Deno gives everybody these, whatever the permissions, and they are the same for all functions: what is on the disk,
  // a way to talk to each other, and the mask of the files that the server's process makes.
  for (const name of ["openKv", "umask"]) Reflect.deleteProperty(Deno, name);
  for (const name of ["caches", "localStorage", "sessionStorage", "BroadcastChannel"]) {
    Reflect.deleteProperty(globalThis, name);
  }
  return import(url);
}
