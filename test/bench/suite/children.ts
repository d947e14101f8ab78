// The processes that a run starts: all of them end with it, however it ends.
import { treeOf } from "./process_tree.ts";

const running = new Set<Deno.ChildProcess>();

/** Starts a program that {@linkcode killAll} ends. */
export function start(program: string, options: Deno.CommandOptions): Deno.ChildProcess {
  const child = new Deno.Command(program, { stdin: "null", stdout: "piped", stderr: "piped", ...options }).spawn();
  running.add(child);
  child.status.then(() => running.delete(child));
  return child;
}

/** Ends a program, and all that it has started. */
export function kill({ pid }: Deno.ChildProcess): void {
  const members = treeOf(pid); // some servers' workers have groups of their own
  for (const target of [-pid, ...members]) {
    try {
      Deno.kill(target, "SIGKILL");
    } catch {
      // It has ended, or leads no group.
    }
  }
}

/** Ends all at once; for those who cannot wait. */
export function killAll(): void {
  for (const child of running) kill(child);
}
