// Programs that start another one in their own place, with something changed about its process.

const usable = new Map<string, boolean>();

/** The words to put before a command, or none where this machine has no such program. Linux only. */
export function wrapper(...words: readonly string[]): readonly string[] {
  const key = words.join(" ");
  if (!usable.has(key)) usable.set(key, canRun(words));
  return usable.get(key) ? words : [];
}

function canRun([program, ...args]: readonly string[]): boolean {
  if (Deno.build.os !== "linux") return false;
  try {
    const command = new Deno.Command(program!, {
      args: [...args, "true"],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    });
    return command.outputSync().success;
  } catch {
    return false;
  }
}
