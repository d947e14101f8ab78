// Tells when something in a folder changes.

/** An editor writes a file in several steps, a checkout many files. */
const SETTLE_MS = 30;

/** Calls `action` after changes in `folder`, until the returned function is called. */
export function watchFolder(folder: URL, action: () => void): () => void {
  const watcher = Deno.watchFs(decodeURIComponent(folder.pathname), { recursive: true });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const follow = async () => {
    for await (const { kind } of watcher) {
      if (kind === "access") continue;
      clearTimeout(timer);
      timer = setTimeout(action, SETTLE_MS);
    }
  };
  follow();
  return () => {
    clearTimeout(timer);
    watcher.close();
  };
}
