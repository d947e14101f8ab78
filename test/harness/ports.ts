// A function in an instance of its own, with everything in between but the worker or the process.
import { type AnyModel, defineModel, type ModelOptions } from "../../runtime/core/define.ts";
import type { LogRecord } from "../../runtime/core/log.ts";
import type { IoSpec, ParamSpecs } from "../../runtime/core/spec.ts";
import type { Instance } from "../../runtime/workers/instance.ts";
import type { FromInstance, Port, ToInstance } from "../../runtime/workers/messages.ts";
import { type RemoteOptions, type RemotePort, startRemote } from "../../runtime/workers/remote.ts";
import { type FunctionSource, runFunction } from "../../runtime/workers/runner.ts";
import { NEVER, recordLog } from "./calls.ts";

/** Two ends of a connection in memory: messages are cloned, and arrive a microtask later. */
export class MemoryPorts {
  /** What the instance was told. */
  readonly toInstance: ToInstance[] = [];
  /** What it said. */
  readonly fromInstance: FromInstance[] = [];
  /** How the server ended it: whether it had been silent. */
  readonly terminations: boolean[] = [];
  readonly server: RemotePort;
  readonly instance: Port<ToInstance, FromInstance>;
  #blocked: ToInstance[] | undefined;

  constructor() {
    this.server = {
      post: (message) => this.#deliver(this.toInstance, message, (copy) => this.#toInstance(copy)),
      onMessage: () => {},
      onGone: () => {},
      terminate: (isSilent) => void this.terminations.push(isSilent),
    };
    this.instance = {
      post: (message) => this.#deliver(this.fromInstance, message, (copy) => this.server.onMessage(copy)),
      onMessage: () => {},
    };
  }

  /** The instance's event loop answers no more. */
  block(): void {
    this.#blocked = [];
  }

  unblock(): void {
    const blocked = this.#blocked ?? [];
    this.#blocked = undefined;
    for (const message of blocked) this.instance.onMessage(message);
  }

  #toInstance(message: ToInstance): void {
    if (this.#blocked) this.#blocked.push(message);
    else this.instance.onMessage(message);
  }

  #deliver<M>(sent: M[], message: M, receive: (copy: M) => void): void {
    const copy = structuredClone(message);
    sent.push(copy);
    queueMicrotask(() => {
      if (this.terminations.length === 0) receive(copy);
    });
  }
}

export interface RemoteFunction {
  readonly ports: MemoryPorts;
  /** Rejects when the function cannot be loaded. */
  readonly started: Promise<Instance>;
  readonly records: readonly LogRecord[];
}

/** Starts a function behind ports in memory. */
export function openFunction(
  definition: AnyModel,
  options: Partial<RemoteOptions & FunctionSource> & { readonly signal?: AbortSignal } = {},
): RemoteFunction {
  return openModule({ default: definition }, options);
}

/** Starts what a file exports, or fails to, behind ports in memory. */
export function openModule(
  module: { readonly default?: unknown } | Promise<never>,
  { signal = NEVER, ...options }: Partial<RemoteOptions & FunctionSource> & { readonly signal?: AbortSignal } = {},
): RemoteFunction {
  const ports = new MemoryPorts();
  const { log, records } = recordLog();
  const source = { name: "model", version: undefined, base: "file:///functions/model.ts", ...options };
  const started = startRemote(ports.server, { name: "model", log, ...options }, signal);
  started.catch(() => {});
  runFunction(ports.instance, source, () => Promise.resolve(module));
  return { ports, started, records };
}

/** A running instance of a function that has these handlers. */
export async function startFunction<
  const I extends IoSpec | undefined = undefined,
  const O extends IoSpec | undefined = undefined,
  const P extends ParamSpecs | undefined = undefined,
  M = undefined,
  S = undefined,
>(options: ModelOptions<I, O, P, M, S>): Promise<RemoteFunction & { readonly instance: Instance }> {
  const remote = openFunction(defineModel(options));
  return { ...remote, instance: await remote.started };
}
