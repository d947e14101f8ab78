// Functions in processes of their own, without a server around them.
import type { Call, Reply } from "../../runtime/core/call.ts";
import type { LogRecord } from "../../runtime/core/log.ts";
import type { Instance } from "../../runtime/workers/instance.ts";
import { toFlags } from "../../runtime/workers/permissions.ts";
import { processLauncher, type ProcessOptions } from "../../runtime/workers/process.ts";
import { collect, floats, NEVER, predictCall, recordLog } from "./calls.ts";

/** A function in a process; its end is waited for when it is disposed of. */
export interface Child extends AsyncDisposable {
  readonly instance: Instance;
  readonly pid: number;
  readonly records: readonly LogRecord[];
  run(call: Call): Promise<Reply[]>;
}

/** The options of {@linkcode startChild}. */
export interface ChildOptions extends Partial<ProcessOptions> {
  readonly signal?: AbortSignal | undefined;
}

/** Starts a function, given by the text of its file, or by what `defineModel` takes. */
export async function startChild(code: string, options: ChildOptions = {}): Promise<Child> {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/function.ts`;
  const text = code.startsWith("{")
    ? `import { defineModel, ModelError } from "tensorlet";\nexport default defineModel(${code});\n`
    : code;
  await Deno.writeTextFile(path, text);
  const { log, records } = recordLog();
  const others = children();
  try {
    const instance = await processLauncher({
      name: "model",
      version: undefined,
      file: new URL(`file://${path}`),
      flags: toFlags({}, [path]),
      heapMb: undefined,
      log,
      ...options,
    })(options.signal ?? NEVER);
    const [pid] = children().filter((pid) => !others.includes(pid));
    return {
      instance,
      pid: pid!,
      records,
      run: (call) => collect(instance.run(call).replies),
      async [Symbol.asyncDispose]() {
        await instance.close(1_000);
      },
    };
  } finally {
    await Deno.remove(folder, { recursive: true }); // it was imported
  }
}

/** The options of a function that does `code` when its first value is 1, and answers its input else. */
export function faulty(code: string): string {
  return `{
    async predict([x], ctx) {
      if (x.data[0] === 1) { ${code} }
      return x;
    },
  }`;
}

/** Whether a {@linkcode faulty} function answers. */
export async function answers(child: Child): Promise<boolean> {
  return (await child.run(predictCall({ input: floats(7) })))[0]?.type === "tensors";
}

/** The pids of this process's children: each thread has its own. */
export function children(): number[] {
  return [...Deno.readDirSync(`/proc/${Deno.pid}/task`)].flatMap(({ name }) =>
    Deno.readTextFileSync(`/proc/${Deno.pid}/task/${name}/children`).split(" ").filter((pid) => pid !== "").map(Number)
  );
}

/** Whether a process runs; one that has ended and that nobody asked for does not. */
export function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/.test(Deno.readTextFileSync(`/proc/${pid}/stat`));
  } catch {
    return false;
  }
}

/** The folders of sockets that nobody has removed. */
export function socketFolders(): string[] {
  return [...Deno.readDirSync("/tmp")].map(({ name }) => name).filter((name) => /^tensorlet-\w{8,}/.test(name));
}
