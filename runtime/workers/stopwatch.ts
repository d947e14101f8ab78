// How long a call waits for its instance and runs there, for the observer of a pool.
import type { Ending } from "../core/around.ts";
import type { Call, Reply } from "../core/call.ts";
import type { ObservedModel, Observer } from "../core/observer.ts";

/** One call, from the moment in which it asks for an instance. */
export class Stopwatch {
  readonly #observer: Observer;
  readonly #model: ObservedModel;
  readonly #call: Call;
  readonly #cameAt = performance.now();
  #startedAt: number | undefined;
  #finalAt: number | undefined;

  constructor(observer: Observer, model: ObservedModel, call: Call) {
    this.#observer = observer;
    this.#model = model;
    this.#call = call;
  }

  /** It has an instance. */
  start(): void {
    this.#startedAt = performance.now();
    this.#observer.onStart?.(this.#call, this.#model, this.#startedAt - this.#cameAt);
  }

  // A call ends when its reader asks for more, which is when the last reply has been delivered.
  onReply(reply: Reply): void {
    if ("final" in reply && reply.final) this.#finalAt = performance.now();
  }

  /** It is over; where it had no instance nobody is told. */
  end(ending: Ending): void {
    if (this.#startedAt === undefined) return;
    const endedAt = this.#finalAt ?? performance.now();
    this.#observer.onEnd?.(this.#call, this.#model, endedAt - this.#startedAt, ending);
  }
}
