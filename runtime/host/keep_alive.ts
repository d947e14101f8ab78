// What nobody caught must not end a process that others need.
import type { Logger } from "../core/log.ts";

/** Logs promises and callbacks that fail unheard: a function's stray timer must not take the others' calls with it. */
export function keepAlive(log: Logger): void {
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    log.error("A promise that nobody waited for failed", { cause: event.reason });
  });
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    log.error("A callback failed", { cause: event.error });
  });
}
