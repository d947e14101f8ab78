// The instances of one load of a function: started on demand, bounded, queued for, replaced when they die, ended when idle.
import { around } from "../core/around.ts";
import type { Call, ChatCall, Reply, SessionSnapshot } from "../core/call.ts";
import type { ModelState } from "../core/catalog.ts";
import type { ModelDescription, SessionEnd } from "../core/define.ts";
import type { Deployment, DeploymentStatus, InstanceStates } from "../core/deployment.ts";
import { ModelError } from "../core/error.ts";
import type { Run } from "../core/execute.ts";
import { type Logger, withFields } from "../core/log.ts";
import type { Observer } from "../core/observer.ts";
import { runUntil } from "../core/run_until.ts";
import { abortable, linkSignals } from "../core/signal.ts";
import type { Instance, Launch } from "./instance.ts";
import type { PoolLimits } from "./pool_limits.ts";
import { Stopwatch } from "./stopwatch.ts";
import { type Member, Watchdog } from "./watchdog.ts";

/** The options of {@linkcode Pool}. */
export interface PoolOptions {
  readonly description: ModelDescription;
  readonly limits: PoolLimits;
  readonly warm: boolean;
  /** Closes without waiting for handlers whose calls were aborted. @default {false} */
  readonly abandons?: boolean;
  readonly launch: Launch;
  /** Told of its calls and instances. */
  readonly observer?: Observer | undefined;
  /** Its lines carry the function's name. */
  readonly log: Logger;
}

interface PoolMember extends Member {
  idleSince: number;
  /** Calls that ended well since it started. */
  served: number;
}

interface Waiting {
  readonly call: Call;
  readonly take: (member: PoolMember) => void;
  readonly refuse: (error: ModelError) => void;
}

const MAX_RETRY_MS = 60_000;
/** How long a handler may hold its event loop where its calls have no bound of their own. */
const MAX_BLOCKED_MS = 60_000;
/** Instances that die one after the other without having answered a call before the function counts as failed. */
const MAX_CRASHES = 3;

/** The instances of one load of a function. */
export class Pool implements Deployment {
  readonly description: ModelDescription;
  readonly warm: boolean;
  readonly #options: PoolOptions;
  /** A warm function keeps an instance: without one it would count as not serving. */
  readonly #min: number;
  readonly #members = new Set<PoolMember>();
  readonly #queue = new Set<Waiting>();
  /** Where each session was served last. */
  readonly #homes = new Map<string, PoolMember>();
  readonly #closing = new AbortController();
  readonly #watchdog: Watchdog;
  #onChange: () => void = () => {};
  #state: ModelState = "registered";
  #launching: Promise<PoolMember>[] = [];
  /** Launches in progress, those that came too late for their call among them. */
  readonly #launched = new Set<Promise<unknown>>();
  readonly #vanishing = new Set<Promise<void>>();
  #isUnloaded = false;
  #calls = 0;
  #failures = 0;
  #trouble = "cannot be loaded";
  #retryAt = 0;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  #drained: PromiseWithResolvers<void> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.description = options.description;
    this.warm = options.warm;
    const { graceMs, callTimeoutMs = MAX_BLOCKED_MS } = options.limits;
    this.#watchdog = new Watchdog({
      name: options.description.name,
      graceMs,
      maxBlockedMs: callTimeoutMs,
      log: withFields(options.log, { version: options.description.version }),
      replace: () => this.#restore(),
    });
    this.#min = options.warm ? Math.max(1, options.limits.instances.min) : options.limits.instances.min;
  }

  get state(): ModelState {
    return this.#state;
  }

  get status(): DeploymentStatus {
    let busy = 0;
    for (const member of this.#members) busy += member.busy;
    const { max } = this.#options.limits.instances;
    return { instances: this.#members.size, maxInstances: max, busy, queued: this.#queue.size };
  }

  get instanceStates(): InstanceStates {
    const busy = [...this.#members].filter((member) => member.busy > 0).length;
    return { idle: this.#members.size - busy, busy, loading: this.#launching.length };
  }

  get hasRoom(): boolean {
    const { instances, concurrency } = this.#options.limits;
    return this.status.busy < instances.max * concurrency;
  }

  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  async start(): Promise<void> {
    this.#isUnloaded = false;
    const wanted = Math.max(1, this.#min);
    while (this.#members.size + this.#launching.length < wanted) this.#launch();
    await Promise.all(this.#launching);
  }

  unload(): void {
    this.#isUnloaded = true;
    clearTimeout(this.#retryTimer);
    for (const member of this.#members) if (member.busy === 0 && !member.leaving) this.#end(member);
    if (this.#members.size + this.#launching.length === 0) this.#setState("unloaded");
  }

  readonly invoke = (call: Call): AsyncIterable<Reply, void, undefined> => {
    const { callTimeoutMs } = this.#options.limits;
    if (callTimeoutMs === undefined) return this.#run(call);
    return runUntil(
      (bounded) => this.#run(bounded),
      call,
      Math.min(call.deadline ?? Infinity, Date.now() + callTimeoutMs),
    );
  };

  #run(call: Call): AsyncIterable<Reply, void, undefined> {
    let member: PoolMember;
    let run: Run | undefined;
    let settled = false;
    let onSettled = () => {};
    const { observer } = this.#options;
    const stopwatch = observer && new Stopwatch(observer, this.description, call);
    return around<Reply>({
      enter: () => {
        if (this.#isUnloaded) throw this.#unloadedError();
        this.#calls++;
        const free = this.#freeMember(call);
        if (!free) return this.#waitForMember(call).then((found) => void (member = found), this.#refuse);
        free.busy++;
        member = free;
      },
      values: () => {
        if (call.kind === "chat" && this.description.hasClose) this.#homes.set(call.sessionId, member);
        stopwatch?.start();
        run = member.instance.run(call);
        if (member.instance.isolated) this.#watchdog.watch(this.#members);
        run.settled.then(() => {
          settled = true;
          onSettled();
          this.#release(member);
        });
        return run.replies;
      },
      onValue: (reply) => stopwatch?.onReply(reply),
      leave: (ending) => {
        stopwatch?.end(ending);
        if (ending.how === "completed") {
          member.served++;
          this.#failures = 0;
        } else if (call.kind === "chat" && !call.session) {
          this.#homes.delete(call.sessionId); // a session whose first turn fails may never be ended
        }
        if (!run) this.#release(member);
        else if (!settled) onSettled = this.#watchdog.expect(member);
        this.#uncount();
      },
    });
  }

  readonly #refuse = (reason: unknown): never => {
    this.#uncount();
    throw reason;
  };

  #uncount(): void {
    if (--this.#calls === 0) this.#drained?.resolve();
  }

  // First come first served.
  async #waitForMember(call: Call): Promise<PoolMember> {
    const { queue, concurrency, instances } = this.#options.limits;
    const { name } = this.description;
    if (this.#members.size + this.#launching.length === 0 && this.#pauses) throw this.#loadFailure();
    const coming = Math.max(1, instances.max) - this.#staying; // who waits for a start has a place in what starts
    if (this.#queue.size >= queue + (coming > 0 ? coming * concurrency : 0)) {
      throw new ModelError(
        "resource_exhausted",
        `Function "${name}" is busy: its ${this.#members.size} instances run ${concurrency} calls each (option concurrency) and ${queue} wait (option queue)`,
        { details: { retryAfterMs: 1000 } },
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<PoolMember>();
    const waiting: Waiting = { call, take: resolve, refuse: reject };
    this.#queue.add(waiting);
    this.#launchForQueue();
    try {
      return await abortable(promise, call.signal);
    } catch (error) {
      // The place may have come in the same moment as the abort.
      if (!this.#queue.delete(waiting)) promise.then((member) => this.#release(member), () => {});
      throw error;
    }
  }

  // The least busy instance that has a place; a session's own where it has one.
  #freeMember(call: Call): PoolMember | undefined {
    const { concurrency } = this.#options.limits;
    const home = call.kind === "chat" ? this.#homes.get((call as ChatCall).sessionId) : undefined;
    if (home && !home.leaving && home.busy < concurrency) return home;
    let best: PoolMember | undefined;
    for (const member of this.#members) {
      if (!member.leaving && member.busy < concurrency && (!best || member.busy < best.busy)) best = member;
    }
    return best;
  }

  #release(member: PoolMember): void {
    member.busy--;
    if (member.busy <= 1) member.onEmpty();
    const [next] = this.#queue;
    if (next && !member.leaving && member.busy < this.#options.limits.concurrency) {
      this.#queue.delete(next);
      member.busy++;
      next.take(member);
    } else if (member.busy === 0) {
      if (this.#isUnloaded && !member.leaving) return void this.#end(member);
      member.idleSince = Date.now();
      this.#armIdle();
    }
  }

  #launchForQueue(): void {
    if (this.#closing.signal.aborted || this.#pauses) return;
    const { instances, concurrency } = this.#options.limits;
    // One at least: concurrency may be infinite.
    const wanted = Math.min(this.#queue.size, Math.max(1, Math.ceil(this.#queue.size / concurrency)));
    const room = Math.max(1, instances.max) - this.#staying;
    while (this.#launching.length < Math.min(wanted, room)) this.#launch();
  }

  #keepMinimum(): void {
    if (this.#drained || this.#pauses || this.#isUnloaded) return;
    while (this.#staying + this.#launching.length < this.#min) this.#launch();
  }

  get #staying(): number {
    let count = 0;
    for (const { leaving } of this.#members) if (!leaving) count++;
    return count;
  }

  // Whether it waits before it tries to load the function again.
  get #pauses(): boolean {
    return Date.now() < this.#retryAt;
  }

  #launch(): Promise<PoolMember> {
    if (this.#members.size === 0 && !this.#pauses) this.#setState("loading");
    const launching = this.#startOne().finally(() => {
      this.#launching = this.#launching.filter((other) => other !== launching);
      if (this.#members.size === 0) this.#restore();
    });
    launching.catch(() => {}); // logged where it happened
    this.#launching.push(launching);
    return launching;
  }

  async #startOne(): Promise<PoolMember> {
    const { log, limits, launch, description, observer } = this.#options;
    this.#closing.signal.throwIfAborted();
    if (this.#pauses) throw this.#loadFailure();
    const start = performance.now();
    using linked = linkSignals(this.#closing.signal);
    const timer = setTimeout(
      () => linked.abort(new ModelError("unavailable", `It took more than ${limits.loadTimeoutMs} ms (loadTimeoutMs)`)),
      limits.loadTimeoutMs,
    );
    try {
      const instance = await this.#inTime(launch(linked.signal), linked.signal);
      const ms = performance.now() - start;
      log.debug("loaded", { version: description.version, ms: Math.round(ms) });
      observer?.onLoaded?.(description, ms, this.#nextWaiting().map(({ call }) => call));
      return this.#join(instance);
    } catch (cause) {
      if (!this.#closing.signal.aborted) {
        const waiting = [...this.#queue].map(({ call }) => call);
        observer?.onLoadFailed?.(description, performance.now() - start, cause, waiting);
        this.#trouble = "cannot be loaded";
        this.#onFailure("Cannot load the function", cause);
      }
      throw this.#loadFailure(cause);
    } finally {
      clearTimeout(timer);
    }
  }

  // The instance, unless the signal aborts before: one that comes too late is ended.
  async #inTime(launched: Promise<Instance>, signal: AbortSignal): Promise<Instance> {
    let late = false;
    const followed = launched.then((instance) => late ? this.#closeInstance(instance) : undefined, () => {})
      .finally(() => this.#launched.delete(followed));
    this.#launched.add(followed);
    try {
      return await abortable(launched, signal);
    } catch (error) {
      late = true;
      throw error;
    }
  }

  #join(instance: Instance): PoolMember {
    const member: PoolMember = {
      instance,
      busy: 0,
      idleSince: Date.now(),
      leaving: false,
      served: 0,
      onEmpty: () => {},
    };
    this.#members.add(member);
    this.#setState("ready");
    instance.ended.then((error) => this.#onEnded(member, error));
    const vanishing = instance.vanished.finally(() => this.#vanishing.delete(vanishing));
    this.#vanishing.add(vanishing);
    for (const waiting of this.#nextWaiting()) {
      this.#queue.delete(waiting);
      member.busy++;
      waiting.take(member);
    }
    if (this.#isUnloaded && member.busy === 0) this.#end(member);
    else this.#armIdle();
    return member;
  }

  // Those for whom a new instance has a place.
  #nextWaiting(): Waiting[] {
    return [...this.#queue].slice(0, this.#options.limits.concurrency);
  }

  #onFailure(message: string, cause: unknown): void {
    const { log, description } = this.#options;
    const delayMs = Math.min(1000 * 2 ** this.#failures++, MAX_RETRY_MS);
    this.#retryAt = Date.now() + delayMs;
    log.error(message, { version: description.version, retryMs: delayMs, cause });
    if (this.#members.size === 0) this.#setState("failed");
    // No call may come for a warm function that failed: health keeps them away.
    clearTimeout(this.#retryTimer);
    if (this.#drained || this.#min === 0 || this.#isUnloaded) return;
    this.#retryTimer = setTimeout(() => {
      this.#retryAt = 0; // a timer may be a little early
      this.#keepMinimum();
    }, delayMs);
  }

  #onEnded(member: PoolMember, error: ModelError | undefined): void {
    const wasExpected = member.leaving;
    member.leaving = true;
    this.#members.delete(member);
    for (const [id, home] of this.#homes) if (home === member) this.#homes.delete(id);
    if (this.#closing.signal.aborted) return;
    const { log, description, observer } = this.#options;
    if (error) observer?.onDied?.(description, error);
    if (error && !wasExpected) {
      if (member.served === 0 && this.#failures + 1 >= MAX_CRASHES) {
        this.#trouble = "keeps dying";
        this.#onFailure("The function keeps dying", error);
      } else {
        if (member.served === 0) this.#failures++;
        log.error(error.message, { version: description.version, cause: error.cause });
      }
    }
    this.#restore();
  }

  // After an instance has gone or could not start: the next for those who wait, or to keep the minimum.
  #restore(): void {
    if (this.#closing.signal.aborted) return;
    this.#launchForQueue();
    this.#keepMinimum();
    if (this.#members.size + this.#launching.length > 0) return;
    this.#setState(this.#isUnloaded ? "unloaded" : this.#pauses ? "failed" : "registered");
    for (const waiting of this.#queue) waiting.refuse(this.#loadFailure());
    this.#queue.clear();
  }

  #unloadedError(): ModelError {
    return new ModelError("unavailable", `Function "${this.description.name}" is unloaded: it is to be loaded first`);
  }

  #loadFailure(cause?: unknown): ModelError {
    return new ModelError(
      "unavailable",
      `Function "${this.description.name}" ${this.#trouble}; the server's log says why`,
      { details: { retryAfterMs: Math.max(1, this.#retryAt - Date.now()) }, cause },
    );
  }

  // One timer for all instances: to start and clear one for every call would cost more than the call's own bookkeeping.
  #armIdle(): void {
    const { idleMs } = this.#options.limits;
    if (idleMs === Infinity || this.#idleTimer !== undefined || this.#staying <= this.#min) return;
    if (this.#closing.signal.aborted) return;
    const idle = [...this.#members].filter(({ busy, leaving }) => busy === 0 && !leaving);
    if (idle.length === 0) return;
    const oldest = Math.min(...idle.map(({ idleSince }) => idleSince));
    this.#idleTimer = setTimeout(() => {
      this.#idleTimer = undefined;
      this.#endIdle();
    }, Math.max(1, oldest + idleMs - Date.now()));
  }

  #endIdle(): void {
    const { idleMs } = this.#options.limits;
    for (const member of this.#members) {
      if (this.#staying <= this.#min) break;
      if (member.busy > 0 || member.leaving || Date.now() - member.idleSince < idleMs) continue;
      this.#end(member);
    }
    this.#armIdle();
  }

  async #end(member: PoolMember): Promise<void> {
    member.leaving = true;
    this.#members.delete(member);
    if (this.#members.size + this.#launching.length === 0 && this.#state === "ready") {
      this.#setState(this.#isUnloaded ? "unloaded" : "registered");
    }
    await this.#closeInstance(member.instance);
  }

  async #closeInstance(instance: Instance): Promise<void> {
    const { log, limits, description } = this.#options;
    try {
      await instance.close(limits.graceMs);
    } catch (cause) {
      log.error("Cannot unload the function", { version: description.version, cause });
    }
  }

  async endSession(snapshot: SessionSnapshot, reason: SessionEnd): Promise<void> {
    if (!this.description.hasClose) return;
    const home = this.#homes.get(snapshot.id);
    this.#homes.delete(snapshot.id);
    const running = home && !home.leaving ? home : [...this.#members].find(({ leaving }) => !leaving);
    const member = running ?? await this.#launch();
    member.busy++; // not idle
    if (member.instance.isolated) this.#watchdog.watch(this.#members);
    try {
      await member.instance.endSession(snapshot, reason);
    } finally {
      this.#release(member);
    }
  }

  close(): Promise<void> {
    return this.#closed ??= this.#close();
  }

  async #close(): Promise<void> {
    if (this.#members.size > 0) this.#setState("draining");
    const wasLoaded = this.#members.size + this.#launching.length > 0;
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#idleTimer);
    this.#drained = Promise.withResolvers<void>();
    if (this.#calls > 0) await this.#drained.promise;
    this.#closing.abort(new ModelError("unavailable", "The server is shutting down"));
    await this.#watchdog.close(this.#options.abandons); // handlers of aborted calls end, and `unload` comes after them
    await Promise.all(this.#launched);
    await Promise.all([...this.#members].map((member) => this.#end(member)));
    await Promise.all(this.#vanishing); // also of those that were about to end
    clearTimeout(this.#idleTimer);
    if (wasLoaded) this.#setState("unloaded");
  }

  #setState(state: ModelState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#onChange();
  }
}
