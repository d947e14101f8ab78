// Dynamic batching: predict calls that come at the same time run as one. A call waits only while others are on their
// way: for a function that has nothing to do and nobody else to answer it never does.
import type { BatchCall, Call, Interceptor, Invoke, PredictCall, Reply } from "../core/call.ts";
import type { CatalogEntry } from "../core/catalog.ts";
import type { Batching } from "../core/define.ts";
import { ModelError } from "../core/error.ts";
import type { Observer } from "../core/observer.ts";
import { abortable, type LinkedSignal, linkSignals } from "../core/signal.ts";
import { stackKey } from "../core/stack.ts";
import type { NamedTensors } from "../core/tensor.ts";
import { NO_VALUES } from "../core/values.ts";

/** What gathering needs to know of functions. */
export interface BatchingEnvironment {
  readonly find: (call: Call) => CatalogEntry;
  /** How many instances a function may have, and whether one could take a call now. */
  readonly roomOf: (call: Call) => { readonly instances: number; readonly hasRoom: boolean };
  /** Told of the batches. */
  readonly observer?: Observer | undefined;
}

/** Gathers predict calls of functions that want it. */
export function batching(environment: BatchingEnvironment): Interceptor {
  return (next) => {
    const lanes = new WeakMap<CatalogEntry, Lane>(); // an entry is of one load of a function
    return (call) => {
      if (call.kind !== "predict") return next(call);
      const entry = environment.find(call);
      if (!entry.batching) return next(call);
      let lane = lanes.get(entry);
      if (!lane) lanes.set(entry, lane = new Lane({ next, batching: entry.batching, ...environment }));
      return lane.run(call);
    };
  };
}

/** One call that is to be part of a batch. */
interface Member {
  readonly call: PredictCall;
  readonly linked: LinkedSignal;
  readonly answer: PromiseWithResolvers<NamedTensors>;
}

/** Calls that may run as one. */
interface Group {
  readonly key: string;
  members: Member[];
  timer: ReturnType<typeof setTimeout> | undefined;
  /** They have waited long enough: they leave as soon as there is room. */
  isDue: boolean;
}

interface LaneOptions extends BatchingEnvironment {
  readonly next: Invoke;
  readonly batching: Batching;
}

/** Groups of which is known how many came together; params of callers make new ones for ever. */
const MAX_EXPECTED = 100;

/** The calls of one load of a function. */
class Lane {
  readonly #options: LaneOptions;
  /** Oldest first. */
  readonly #groups = new Map<string, Group>();
  /** Batches that run. */
  #running = 0;
  /** How many of a group came together the last time, which is how many are expected; one where nothing is known. */
  readonly #expected = new Map<string, number>();

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  async *run(call: PredictCall): AsyncIterable<Reply, void, undefined> {
    using linked = linkSignals(call.signal);
    const member: Member = { call, linked, answer: Promise.withResolvers() };
    member.answer.promise.catch(() => {});
    const group = this.#enter(member);
    let isAnswered = false;
    try {
      const output = await abortable(member.answer.promise, call.signal);
      isAnswered = true;
      yield { type: "tensors", index: 0, output, final: true };
    } finally {
      // It leaves the batch, or the batch goes on without it.
      if (!isAnswered) linked.abort(new ModelError("cancelled", "The call has left its batch"));
      this.#leave(member, group);
    }
  }

  #enter(member: Member): Group {
    const key = stackKey(member.call);
    let group = this.#groups.get(key);
    if (!group) this.#groups.set(key, group = { key, members: [], timer: undefined, isDue: false });
    group.members.push(member);
    this.#consider(group, member);
    return group;
  }

  #leave(member: Member, group: Group): void {
    const at = group.members.indexOf(member);
    if (at < 0) return;
    group.members.splice(at, 1);
    if (group.members.length === 0) this.#dissolve(group);
  }

  #consider(group: Group, { call }: Member): void {
    const { maxSize, maxDelayMs, preferred } = this.#options.batching;
    const size = group.members.length;
    const { instances } = this.#options.roomOf(call);
    const isFree = this.#running < instances;
    if (size >= maxSize || (isFree && (size >= this.#expectedOf(group) || preferred.includes(size)))) {
      return this.#flush(group);
    }
    const untilDeadline = (call.deadline ?? Infinity) - Date.now();
    if (untilDeadline <= maxDelayMs) return this.#flush(group);
    group.timer ??= setTimeout(() => this.#onDue(group), maxDelayMs);
  }

  #onDue(group: Group): void {
    group.timer = undefined;
    group.isDue = true;
    // Where no instance has room the batch would only wait there, and could not grow.
    if (this.#running === 0 || this.#options.roomOf(group.members[0]!.call).hasRoom) this.#flush(group);
  }

  #flush(group: Group): void {
    this.#running++;
    this.#dissolve(group);
    const { members } = group;
    group.members = [];
    this.#expect(group.key, members.length);
    this.#runBatch(members).finally(() => this.#onEnd());
  }

  #expectedOf({ key }: Group): number {
    return this.#expected.get(key) ?? 1;
  }

  #expect(key: string, count: number): void {
    this.#expected.delete(key);
    if (count > 1) this.#expected.set(key, count);
    if (this.#expected.size > MAX_EXPECTED) this.#expected.delete(this.#expected.keys().next().value!);
  }

  #dissolve(group: Group): void {
    clearTimeout(group.timer);
    this.#groups.delete(group.key);
  }

  // A place is free for those that have waited long enough, or are as many as were expected.
  #onEnd(): void {
    this.#running--;
    for (const group of this.#groups.values()) {
      if (!group.isDue && group.members.length < this.#expectedOf(group)) continue;
      return this.#flush(group);
    }
  }

  async #runBatch(members: readonly Member[]): Promise<void> {
    const unanswered = new Set(members);
    try {
      const { next, observer } = this.#options;
      if (members.length === 1) {
        const [member] = members as readonly [Member];
        for await (const reply of next({ ...member.call, signal: member.linked.signal })) {
          if (reply.type !== "tensors") continue;
          member.answer.resolve(reply.output);
          unanswered.delete(member);
        }
      } else {
        using all = new AbortOfAll(members.map(({ linked }) => linked.signal));
        const batch = batchOf(members, all.signal);
        observer?.onBatch?.(batch, members.map(({ call }) => call));
        for await (const reply of next(batch)) {
          if (reply.type !== "tensors" && reply.type !== "failure") continue;
          const member = members[reply.index]!;
          if (reply.type === "tensors") member.answer.resolve(reply.output);
          else member.answer.reject(reply.error);
          unanswered.delete(member);
        }
      }
      if (unanswered.size > 0) throw new ModelError("internal", "The function gave no answer");
    } catch (error) {
      for (const { answer } of members) answer.reject(error);
    }
  }
}

function batchOf(members: readonly Member[], signal: AbortSignal): BatchCall {
  const { id, model, version, revision } = members[0]!.call;
  const deadline = Math.max(...members.map(({ call }) => call.deadline ?? Infinity));
  return {
    kind: "batch",
    id: `${id}+${members.length - 1}`,
    model,
    version,
    ...revision !== undefined && { revision },
    params: {},
    maxTokens: undefined,
    signal,
    deadline: Number.isFinite(deadline) ? deadline : undefined,
    metadata: new Headers(),
    values: NO_VALUES,
    items: members.map(({ call, linked }) => ({
      id: call.id,
      input: call.input,
      params: call.params,
      signal: linked.signal,
      ...call.receivedAt !== undefined && { receivedAt: call.receivedAt },
    })),
    gathered: true,
    trail: {},
  };
}

/** Aborts when the last of its signals does. */
class AbortOfAll implements Disposable {
  readonly #controller = new AbortController();
  readonly #signals: readonly AbortSignal[];
  #left: number;

  constructor(signals: readonly AbortSignal[]) {
    this.#signals = signals;
    this.#left = signals.length;
    for (const signal of signals) {
      if (signal.aborted) this.#onAbort();
      else signal.addEventListener("abort", this.#onAbort, { once: true });
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  readonly #onAbort = (): void => {
    if (--this.#left === 0) this.#controller.abort(new ModelError("cancelled", "Every call of the batch has left"));
  };

  [Symbol.dispose](): void {
    for (const signal of this.#signals) signal.removeEventListener("abort", this.#onAbort);
  }
}
