// Finds out whether a worker's thread is really gone: terminate() does not stop an endless loop, and tells nobody.

/** What a long synchronous computation gets to end after terminate(). */
const LINGER_MS = 2_000;
const TASKS = "/proc/self/task";

/** The thread of a worker. */
export interface WorkerThread {
  /** After terminate() of a worker that did not answer: calls `action` if its thread goes on. */
  onLingering(action: () => void): void;
}

/** Call it right after `new Worker()`. Where threads cannot be seen (not on Linux), one that did not answer goes on. */
export function newestWorkerThread(): WorkerThread {
  const thread = newest();
  return {
    onLingering(action) {
      if (thread === undefined) return action();
      const deadline = Date.now() + LINGER_MS;
      const check = () => {
        if (nameOf(thread.id) !== thread.name) return;
        if (Date.now() >= deadline) action();
        else setTimeout(check, 100);
      };
      check();
    },
  };
}

// Deno names the threads worker-0, worker-1, ... in the order of their start.
function newest(): { readonly id: string; readonly name: string } | undefined {
  let found: { readonly id: string; readonly name: string; readonly number: number } | undefined;
  try {
    for (const { name: id } of Deno.readDirSync(TASKS)) {
      const name = nameOf(id);
      const number = Number(name?.match(/^worker-(\d+)$/)?.[1] ?? NaN);
      if (name !== undefined && number > (found?.number ?? -1)) found = { id, name, number };
    }
  } catch {
    return undefined;
  }
  return found;
}

function nameOf(id: string): string | undefined {
  try {
    return Deno.readTextFileSync(`${TASKS}/${id}/comm`).trim();
  } catch {
    return undefined; // it has ended
  }
}
