// Ends instances whose handlers do not: those that ignore an abort, and those that hold their event loop.
import { ModelError } from "../core/error.ts";
import type { Logger } from "../core/log.ts";
import { within } from "../core/signal.ts";
import type { Instance } from "./instance.ts";

/** An instance as its pool keeps it. */
export interface Member {
  readonly instance: Instance;
  /** Calls in progress. */
  busy: number;
  /** Takes no more calls: it is to be ended. */
  leaving: boolean;
  /** Told when no call but an overdue one is left. */
  onEmpty: () => void;
}

/** The options of {@linkcode Watchdog}. */
export interface WatchdogOptions {
  /** The function's name. */
  readonly name: string;
  readonly graceMs: number;
  /** How long a handler may hold its event loop. */
  readonly maxBlockedMs: number;
  readonly log: Logger;
  /** An instance leaves: another may take its place. */
  readonly replace: () => void;
}

/** An instance whose event loop is free answers a probe within a moment; a busy machine gets some more. */
const PROBE_MS = 1_000;
/** What the other calls of an instance get that is to be ended because one handler ignores its abort. */
const LEAVE_MS = 10_000;
/** How often the event loops of instances with calls are probed. */
const WATCH_MS = 5_000;

/** Watches the instances of one function. */
export class Watchdog {
  readonly #options: WatchdogOptions;
  readonly #probed = new WeakSet<Member>();
  readonly #overdue = new Set<ReturnType<typeof setTimeout>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  #onQuiet: () => void = () => {};

  constructor(options: WatchdogOptions) {
    this.#options = options;
  }

  /** A call begins: until none runs, an event loop that does not answer is noticed. */
  watch(members: ReadonlySet<Member>): void {
    // One timer for all calls: to start and clear one for each would cost more than the rest of their bookkeeping.
    if (this.#timer !== undefined || this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const busy = [...members].filter((member) => member.busy > 0 && !member.leaving && member.instance.isolated);
      for (const member of busy) this.#probe(member);
      if (busy.length > 0) this.watch(members);
    }, WATCH_MS);
  }

  /** No more probes, and no instance is ended any more; resolves when no handler is left that has grace time, unless it `abandons` them. */
  async close(abandons = false): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    if (abandons) this.#overdue.forEach((timer) => clearTimeout(timer));
    else if (this.#overdue.size > 0) await new Promise<void>((resolve) => this.#onQuiet = resolve);
  }

  /** A call has ended, its handler not yet: it gets the grace time. Returns what to call when it has. */
  expect(member: Member): () => void {
    if (this.#closed) return () => {};
    const timer = setTimeout(() => {
      this.#forget(timer);
      if (!this.#closed) this.#onOverdue(member);
    }, this.#options.graceMs);
    this.#overdue.add(timer);
    return () => {
      clearTimeout(timer);
      this.#forget(timer);
    };
  }

  #forget(timer: ReturnType<typeof setTimeout>): void {
    if (this.#overdue.delete(timer) && this.#overdue.size === 0) this.#onQuiet();
  }

  async #onOverdue(member: Member): Promise<void> {
    const { name, graceMs, log } = this.#options;
    if (!member.instance.isolated) {
      log.warn("A handler goes on though its call was aborted; it keeps its place", { graceMs });
      return;
    }
    if (member.leaving) return;
    const reason = `Function "${name}" ignored an abort for ${graceMs} ms (option graceMs)`;
    this.#announce(member, reason);
    const responds = await member.instance.responds(PROBE_MS);
    this.#options.replace();
    if (responds) {
      const emptied = Promise.withResolvers<void>();
      member.onEmpty = emptied.resolve;
      if (member.busy > 1) await within(LEAVE_MS, emptied.promise);
    }
    this.#kill(member, reason);
  }

  // An answer that comes late is one: a long computation is no fault.
  async #probe(member: Member): Promise<void> {
    if (this.#probed.has(member)) return;
    this.#probed.add(member);
    const { name, maxBlockedMs } = this.#options;
    const responds = await member.instance.responds(maxBlockedMs);
    this.#probed.delete(member);
    if (responds || member.leaving) return;
    const reason = `Function "${name}" held its event loop for ${maxBlockedMs} ms`;
    this.#announce(member, reason);
    this.#options.replace();
    this.#kill(member, reason);
  }

  #announce(member: Member, reason: string): void {
    member.leaving = true;
    this.#options.log.warn(`${reason}: its instance is replaced`);
  }

  #kill({ instance }: Member, reason: string): void {
    instance.kill(
      new ModelError("unavailable", `${reason}; its instance was ended`, { details: { retryAfterMs: 100 } }),
    );
  }
}
