// Only for the kill test: a --preload that wants --expose-gc. On SIGUSR2 it collects the garbage of the isolate that
// serves, and adds a line with what stays, [RSS, heap + external] in MB, to the file that COLLECT_LOG names.
declare const gc: () => void;

const MB = 1024 * 1024;
const log = Deno.env.get("COLLECT_LOG")!;

Deno.addSignalListener("SIGUSR2", () => {
  gc();
  // Finalizers free what only they can on a later turn.
  setTimeout(() => {
    gc();
    const { rss, heapUsed, external } = Deno.memoryUsage();
    Deno.writeTextFileSync(log, `${JSON.stringify([rss / MB, (heapUsed + external) / MB])}\n`, { append: true });
  });
});
