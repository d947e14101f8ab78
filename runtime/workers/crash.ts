// The instance's side of a failure that no call waits for.
import type { FromInstance } from "./messages.ts";
import { crashOf } from "./runner.ts";

/** Sends them; by themselves they would end the whole process, or print and leave their caller waiting. */
export function reportCrashes(send: (message: FromInstance) => void): void {
  addEventListener("error", (event) => {
    event.preventDefault();
    send(crashOf(event.error));
  });
  addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    send(crashOf(event.reason));
  });
}
