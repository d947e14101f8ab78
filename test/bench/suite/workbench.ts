// What a run shares: a temporary folder, the Python client, and tools that are looked for when they are first needed.
import { writeBody } from "./bodies.ts";
import { PythonClient } from "./python_client.ts";
import { findPython, makeStubs } from "./tools.ts";

/** Lives as long as the run. */
export class Workbench implements AsyncDisposable {
  readonly folder: string = Deno.makeTempDirSync({ prefix: "tensorlet_bench_" });
  readonly #made = new Map<string, unknown>();
  #client: PythonClient | undefined;

  /** What `make` gives, or fails with, the first time. */
  once<T>(key: string, make: () => T): T {
    if (!this.#made.has(key)) this.#made.set(key, make());
    return this.#made.get(key) as T;
  }

  /** A Python with grpcio, and the folder of its stubs. */
  python(): Promise<{ readonly python: string; readonly stubs: string }> {
    return this.once("python", async () => {
      const python = await findPython();
      const stubs = `${this.folder}/stubs`;
      await makeStubs(python, stubs);
      return { python, stubs };
    });
  }

  /** The Python client. */
  client(): Promise<PythonClient> {
    return this.once("client", async () => {
      const { python, stubs } = await this.python();
      return this.#client = new PythonClient(python, stubs);
    });
  }

  /** The file of a request for h2load. */
  body(name: string): string {
    return this.once(`body ${name}`, () => writeBody(this.folder, name));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client?.[Symbol.asyncDispose]();
    await Deno.remove(this.folder, { recursive: true });
  }
}
