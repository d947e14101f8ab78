// A folder of functions of its own, and the server of it.
import type { ServeOptions } from "tensorlet";
import { createLogger } from "../../runtime/core/log.ts";
import { recordLog } from "./calls.ts";
import { type Served, serveModels } from "./grpc_client.ts";

/** A folder of functions that is served. */
export interface Folder extends Served {
  /** Adds or changes files. */
  write(files: Readonly<Record<string, string>>): Promise<void>;
  remove(file: string): Promise<void>;
  /** Resolves when a record whose message fits was logged, or is. */
  logged(pattern: RegExp): Promise<void>;
  /** What was logged so far. */
  readonly logs: ReturnType<typeof recordLog>["records"];
}

/** Serves a folder with these files. */
export async function serveFolder(
  files: Readonly<Record<string, string>>,
  options: ServeOptions = {},
): Promise<Folder> {
  const path = await Deno.makeTempDir();
  const write = async (files: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(files)) {
      const file = `${path}/${name}`;
      await Deno.mkdir(file.slice(0, file.lastIndexOf("/")), { recursive: true });
      await Deno.writeTextFile(file, text);
    }
  };
  await write(files);
  const { log: recorder, records } = recordLog();
  const waiting = new Set<() => void>();
  const log = createLogger(({ level, message, fields }) => {
    recorder[level](message, fields);
    for (const look of waiting) look();
  });
  const served = await serveModels(new URL(`file://${path}/`), { log, ...options });
  return {
    ...served,
    write,
    logs: records,
    logged(pattern) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const look = () => {
        if (records.some(({ message }) => pattern.test(message))) waiting.delete(look), resolve();
      };
      waiting.add(look);
      look();
      return promise;
    },
    remove: (file) => Deno.remove(`${path}/${file}`),
    async [Symbol.asyncDispose]() {
      await served[Symbol.asyncDispose]();
      await Deno.remove(path, { recursive: true });
    },
  };
}
