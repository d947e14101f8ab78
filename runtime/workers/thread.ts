// Finds out whether a worker's thread is really gone: terminate() does not stop an endless loop, and tells nobody.

/** What a long synchronous computation gets to end after terminate(). */
const LINGER_MS = 2_000;
const TASKS = "/proc/self/task";

/** The thread of a worker. */
export interface WorkerThread {
  /** After terminate() of a worker that did not answer: whether its thread goes on. */
  lingers(): Promise<boolean>;
}

/** Call it right after `new Worker()`. Where threads cannot be seen (not on Linux), one that did not answer goes on. */
export function newestWorkerThread(): WorkerThread {
  const thread = newest();
  return {
    async lingers() {
      if (thread === undefined) return true;
      const deadline = Date.now() + LINGER_MS;
      while (nameOf(thread.id) === thread.name) {
        if (Date.now() >= deadline) return true;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      return false;
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
