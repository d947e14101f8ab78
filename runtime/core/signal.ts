import { ModelError } from "./error.ts";

/** A signal of one's own that also follows its parents. */
export interface LinkedSignal extends Disposable {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
}

// setTimeout takes 31 bits; beyond that it fires at once.
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Makes a signal that aborts with its parents, or by its own `abort`. Dispose it to unlink it. */
export function linkSignals(...parents: readonly AbortSignal[]): LinkedSignal {
  const controller = new AbortController();
  const undo: (() => void)[] = [];
  for (const parent of parents) {
    if (parent.aborted) {
      controller.abort(parent.reason);
      break;
    }
    const follow = () => controller.abort(parent.reason);
    parent.addEventListener("abort", follow, { once: true });
    undo.push(() => parent.removeEventListener("abort", follow));
  }
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    [Symbol.dispose]: () => undo.forEach((unlink) => unlink()),
  };
}

/** What is to be done at one moment. */
interface Appointment {
  readonly actions: Set<() => void>;
  timer: ReturnType<typeof setTimeout>;
}

// By their moment: a timer of its own for every call would cost more than most calls.
const appointments = new Map<number, Appointment>();

/** Calls `action` at `deadline` (epoch milliseconds), however far off; returns what takes it back. */
export function atDeadline(deadline: number, action: () => void): () => void {
  const at = Math.ceil(deadline);
  const own = () => action(); // the same action may be wanted twice
  const appointment = appointments.get(at) ?? makeAppointment(at);
  appointment.actions.add(own);
  return () => {
    if (!appointment.actions.delete(own) || appointment.actions.size > 0) return;
    clearTimeout(appointment.timer);
    forget(at, appointment);
  };
}

function makeAppointment(at: number): Appointment {
  const actions = new Set<() => void>();
  const arm = () => {
    const left = at - Date.now();
    return left > MAX_TIMER_MS ? setTimeout(rearm, MAX_TIMER_MS) : setTimeout(keep, Math.max(0, left));
  };
  const rearm = () => void (appointment.timer = arm());
  const keep = () => {
    forget(at, appointment);
    for (const action of actions) {
      actions.delete(action);
      action();
    }
  };
  const appointment: Appointment = { actions, timer: arm() };
  appointments.set(at, appointment);
  return appointment;
}

function forget(at: number, appointment: Appointment): void {
  if (appointments.get(at) === appointment) appointments.delete(at);
}

/** Why a signal aborted, as the error of a call: a caller's own reason is a cancel. */
export function abortReason(signal: AbortSignal): ModelError {
  const { reason } = signal;
  if (reason instanceof ModelError) return reason;
  return reason instanceof DOMException && reason.name === "TimeoutError"
    ? deadlineExceeded()
    : cancelledByClient(reason);
}

/** Throws a signal's {@linkcode abortReason} if it has aborted. */
export function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw abortReason(signal);
}

/** `promise`, or a rejection with the signal's reason as soon as it aborts. */
export function abortable<T>(promise: PromiseLike<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(abortReason(signal));
    const settle = () => signal.removeEventListener("abort", onAbort);
    promise.then((value) => (settle(), resolve(value)), (error) => (settle(), reject(error)));
    // The promise is always followed: an abort must not leave its failure unhandled.
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** Resolves after `ms`; rejects with the signal's reason as soon as it aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout>;
  const passed = new Promise<void>((resolve) => timer = setTimeout(resolve, ms));
  await abortable(passed, signal).finally(() => clearTimeout(timer));
}

/** Whether `promise` resolved within `ms`. */
export async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.min(ms, MAX_TIMER_MS));
  });
  try {
    return await Promise.race([promise.then(() => true as const), timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/** A signal that does not abort. */
export const NEVER: AbortSignal = new AbortController().signal;

/** The reason of a call whose deadline passed. */
export function deadlineExceeded(): ModelError {
  return new ModelError("deadline_exceeded", "The call's deadline passed before it was answered");
}

/** The reason of a call whose client left. */
export function cancelledByClient(cause?: unknown): ModelError {
  return new ModelError("cancelled", "The client cancelled the call", { cause });
}

/** The reason of a call that a shutdown ended. */
export function shuttingDown(): ModelError {
  return new ModelError("unavailable", "The server is shutting down", { details: { retryAfterMs: 1000 } });
}
