// What bounds an operation, all of its attempts together: a deadline, and signals that abort it.
import { ClientError } from "./error.ts";

/** The bounds of one operation. */
export interface Bounds {
  readonly requestId: string;
  /** Epoch milliseconds. */
  readonly deadline: number | undefined;
  /** Any of them aborts it. */
  readonly signals: readonly AbortSignal[];
}

/** Whether one of the signals has aborted. */
export function isAborted(signals: readonly AbortSignal[]): boolean {
  return signals.some(({ aborted }) => aborted);
}

/** Calls `action` once when the first of the signals aborts, or at once; returns what takes it back. */
export function onAbort(signals: readonly AbortSignal[], action: () => void): () => void {
  const run = () => {
    forget();
    action();
  };
  const forget = () => {
    for (const signal of signals) signal.removeEventListener("abort", run);
  };
  if (isAborted(signals)) action();
  else for (const signal of signals) signal.addEventListener("abort", run);
  return forget;
}

/** Why an operation was aborted: `deadline_exceeded` by a signal that timed out, else `cancelled`. */
export function reasonOf(signals: readonly AbortSignal[], requestId: string): ClientError {
  const reason = signals.find(({ aborted }) => aborted)?.reason;
  if (reason instanceof ClientError) return reason;
  return reason instanceof DOMException && reason.name === "TimeoutError"
    ? new ClientError("deadline_exceeded", "The call was aborted: its signal timed out", { requestId, cause: reason })
    : new ClientError("cancelled", "The call was aborted by its signal", { requestId, cause: reason });
}

/** Resolves after `ms`; rejects as soon as a signal aborts. */
export function sleep(ms: number, { signals, requestId }: Bounds): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      forget();
      resolve();
    }, ms);
    const forget = onAbort(signals, () => {
      clearTimeout(timer);
      reject(reasonOf(signals, requestId));
    });
  });
}
