// A pool whose instances and calls do what a test says.
import type { Call, SessionSnapshot } from "../../runtime/core/call.ts";
import { defineModel, describeModel, resolveModel, type SessionEnd } from "../../runtime/core/define.ts";
import { ModelError } from "../../runtime/core/error.ts";
import type { Run } from "../../runtime/core/execute.ts";
import type { LogRecord } from "../../runtime/core/log.ts";
import type { Observer } from "../../runtime/core/observer.ts";
import { abortable, linkSignals, within } from "../../runtime/core/signal.ts";
import type { Instance, Launch } from "../../runtime/workers/instance.ts";
import { Pool } from "../../runtime/workers/pool.ts";
import { DEFAULT_POOL_LIMITS, type PoolLimits } from "../../runtime/workers/pool_limits.ts";
import { assertEquals } from "tensorlet/assert";
import { chatCall, collect, NEVER, predictCall, recordLog } from "./calls.ts";
import { settled } from "./clock.ts";

/** A call in a {@linkcode FakeInstance}: runs until it is told to end, or aborted. */
export class FakeRun implements Run {
  readonly call: Call;
  readonly #answered = Promise.withResolvers<void>();
  readonly #settled = Promise.withResolvers<void>();
  readonly #obeys: () => boolean;

  constructor(call: Call, obeys: () => boolean) {
    this.call = call;
    this.#obeys = obeys;
    this.#answered.promise.catch(() => {});
  }

  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  readonly replies = this.#run();

  async *#run() {
    try {
      await abortable(this.#answered.promise, this.call.signal);
      yield { type: "tensors", index: 0, output: {}, final: true } as const;
    } finally {
      if (this.#obeys()) this.settle();
    }
  }

  finish(): void {
    this.#answered.resolve();
  }

  fail(reason: ModelError): void {
    this.#answered.reject(reason);
  }

  /** The handler has really ended. */
  settle(): void {
    this.#settled.resolve();
  }
}

export class FakeInstance implements Instance {
  isolated = true;
  /** Whether its handlers end when their call does. */
  obeys = true;
  /** Whether its event loop answers a probe. */
  isFree: boolean | Promise<boolean> = true;
  /** What its close does. */
  unload: () => Promise<void> = () => Promise.resolve();
  /** What the function's close for a session waits for. */
  endingSession: Promise<void> = Promise.resolve();
  readonly runs: FakeRun[] = [];
  readonly closed: number[] = [];
  /** How long it was given to answer, each time it was asked. */
  readonly probes: number[] = [];
  readonly endedSessions: string[] = [];
  killed: ModelError | undefined;
  readonly #ended = Promise.withResolvers<ModelError | undefined>();
  #gone: ModelError | undefined;

  get ended(): Promise<ModelError | undefined> {
    return this.#ended.promise;
  }

  get vanished(): Promise<void> {
    return this.#ended.promise.then(() => {});
  }

  /** Ids of the calls that were given to it. */
  get ids(): string[] {
    return this.runs.map(({ call }) => call.id);
  }

  run(call: Call): Run {
    if (this.#gone) throw this.#gone;
    const run = new FakeRun(call, () => this.obeys);
    this.runs.push(run);
    return run;
  }

  async endSession({ id }: SessionSnapshot, reason: SessionEnd): Promise<void> {
    this.endedSessions.push(`${id} ${reason}`);
    await this.endingSession;
  }

  async responds(ms: number): Promise<boolean> {
    this.probes.push(ms);
    let isFree = false;
    const answered = Promise.resolve(this.isFree).then((answer) => void (isFree = answer));
    return await within(ms, answered) && isFree;
  }

  async close(graceMs: number): Promise<void> {
    this.closed.push(graceMs);
    try {
      await this.unload();
    } finally {
      this.#end(undefined, new ModelError("unavailable", "It has ended"));
    }
  }

  kill(reason: ModelError): void {
    this.killed = reason;
    this.#end(reason, reason);
  }

  /** It dies by itself. */
  crash(message = "It crashed"): void {
    const reason = new ModelError("unavailable", message, { cause: new Error("segfault") });
    this.#end(reason, reason);
  }

  #end(failure: ModelError | undefined, why: ModelError): void {
    this.#gone = why;
    this.#ended.resolve(failure);
    for (const run of this.runs) {
      run.fail(why);
      run.settle();
    }
  }
}

/** A start of an instance. */
export class FakeLaunch {
  readonly instance = new FakeInstance();
  readonly signal: AbortSignal;
  readonly #started = Promise.withResolvers<Instance>();

  constructor(signal: AbortSignal) {
    this.signal = signal;
  }

  get started(): Promise<Instance> {
    return this.#started.promise;
  }

  succeed(): FakeInstance {
    this.#started.resolve(this.instance);
    return this.instance;
  }

  fail(error: unknown = new Error("no weights")): void {
    this.#started.reject(error);
  }
}

/** A call to a {@linkcode FakePool}, and how it ended. */
export interface FakeOutcome {
  readonly outcome: Promise<"ok" | ModelError>;
  abort(): void;
}

export interface FakePool extends AsyncDisposable {
  readonly pool: Pool;
  readonly launches: readonly FakeLaunch[];
  readonly records: readonly LogRecord[];
  /** Every state that it told of. */
  readonly states: readonly string[];
  /** The instance of the launch at `index`. */
  instance(index: number): FakeInstance;
  call(id: string, options?: { readonly deadline?: number; readonly sessionId?: string }): FakeOutcome;
}

export interface FakePoolOptions extends Partial<PoolLimits> {
  readonly warm?: boolean;
  /** Whether the function has a `close`. */
  readonly hasClose?: boolean;
  /** Told of its calls and instances. */
  readonly observer?: Observer;
  /** What a launch does. @default succeeds at once */
  readonly onLaunch?: (launch: FakeLaunch, index: number) => void;
}

export function fakePool(
  { warm = false, hasClose = false, onLaunch, observer, ...limits }: FakePoolOptions = {},
): FakePool {
  const { log, records } = recordLog();
  const launches: FakeLaunch[] = [];
  const states: string[] = [];
  const launch: Launch = (signal) => {
    const launched = new FakeLaunch(signal);
    const index = launches.push(launched) - 1;
    if (onLaunch) onLaunch(launched, index);
    else launched.succeed();
    return launched.started;
  };
  const chat = async function* () {};
  const definition = defineModel({ predict: () => [], chat, ...hasClose && { close: () => {} } });
  const description = describeModel(resolveModel(definition, "model"));
  const pool = new Pool({ description, limits: { ...DEFAULT_POOL_LIMITS, ...limits }, warm, launch, observer, log });
  pool.onChange(() => states.push(pool.state));
  return {
    pool,
    launches,
    records,
    states,
    instance: (index) => launches[index]!.instance,
    call(id, { sessionId, deadline } = {}) {
      const controller = linkSignals(NEVER);
      const base = { id, signal: controller.signal, deadline };
      const call = sessionId === undefined ? predictCall(base) : chatCall("x", { ...base, sessionId });
      const outcome = collect(pool.invoke(call)).then(() => "ok" as const, (error: ModelError) => error);
      return { outcome, abort: () => controller.abort(new ModelError("cancelled", "The client left")) };
    },
    async [Symbol.asyncDispose]() {
      await pool.close();
    },
  };
}

/** A pool whose first instance's handlers ignore their aborts, with one such call beside another one. */
export async function withOverdue(options: FakePoolOptions = {}) {
  const fake = fakePool({
    concurrency: 2,
    graceMs: 100,
    onLaunch: (launch, index) => launch.succeed().obeys = index > 0,
    ...options,
  });
  const [ignoring, other] = [fake.call("ignoring"), fake.call("other")];
  await settled();
  ignoring.abort();
  assertEquals(await codeOf(ignoring), "cancelled");
  return { ...fake, other };
}

/** The code of a call's outcome. */
export async function codeOf({ outcome }: FakeOutcome): Promise<string> {
  const ended = await outcome;
  return ended === "ok" ? ended : ended.code;
}
