// What metrics and traces hear of: what becomes of calls behind the interceptors, and of the instances that run them.
import type { Ending } from "./around.ts";
import type { BatchCall, Call, PredictCall } from "./call.ts";
import type { ModelError } from "./error.ts";

/** The version of a function that is spoken of. */
export interface ObservedModel {
  readonly name: string;
  readonly version: string;
}

/**
 * Hears what happens to calls and instances, as it happens; durations are in milliseconds. It must not throw. The objects
 * of calls are copied on their way: what stays the same is their `values`, and the `items` of a batch.
 */
export interface Observer {
  /** Calls of callers that know nothing of each other leave as one; `members` in the order of its items. */
  onBatch?(batch: BatchCall, members: readonly PredictCall[]): void;
  /** A call has its place in an instance and begins to run; `queuedMs`: how long it waited for one. */
  onStart?(call: Call, model: ObservedModel, queuedMs: number): void;
  /** A call that has started runs no more; `ms`: until its last reply, without the time in which that was delivered. */
  onEnd?(call: Call, model: ObservedModel, ms: number, ending: Ending): void;
  /** An instance has been started and can be called; `waiting`: the calls that it is to run first. */
  onLoaded?(model: ObservedModel, ms: number, waiting: readonly Call[]): void;
  /** An instance could not be started; `waiting`: the calls that waited for one. */
  onLoadFailed?(model: ObservedModel, ms: number, reason: unknown, waiting: readonly Call[]): void;
  /** An instance has ended without having been asked to. */
  onDied?(model: ObservedModel, reason: ModelError): void;
}

/** An observer that tells several ones. */
export function observers(...all: readonly Observer[]): Observer {
  return {
    onBatch: (...event) => all.forEach((each) => each.onBatch?.(...event)),
    onStart: (...event) => all.forEach((each) => each.onStart?.(...event)),
    onEnd: (...event) => all.forEach((each) => each.onEnd?.(...event)),
    onLoaded: (...event) => all.forEach((each) => each.onLoaded?.(...event)),
    onLoadFailed: (...event) => all.forEach((each) => each.onLoadFailed?.(...event)),
    onDied: (...event) => all.forEach((each) => each.onDied?.(...event)),
  };
}
