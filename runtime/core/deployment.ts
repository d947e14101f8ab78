import type { Invoke, SessionSnapshot } from "./call.ts";
import type { ModelState } from "./catalog.ts";
import type { ModelDescription, SessionEnd } from "./define.ts";

/** What a deployment does right now. */
export interface DeploymentStatus {
  /** Copies of the function that run. */
  readonly instances: number;
  readonly maxInstances: number;
  /** Calls that run. */
  readonly busy: number;
  /** Calls that wait for an instance. */
  readonly queued: number;
}

/** How many copies of a function do what. */
export interface InstanceStates {
  /** They could take a call at once. */
  readonly idle: number;
  /** They run calls. */
  readonly busy: number;
  /** They are being started. */
  readonly loading: number;
}

/** One load of one version of a function, wherever it runs. */
export interface Deployment {
  readonly description: ModelDescription;
  readonly state: ModelState;
  readonly status: DeploymentStatus;
  readonly instanceStates: InstanceStates;
  /** Whether one more call could run at once. */
  readonly hasRoom: boolean;
  /** Loaded at the start, and part of the server's health. */
  readonly warm: boolean;
  /** Runs calls, loading the function first where it is not loaded. */
  readonly invoke: Invoke;
  /** Loads it; rejects when that fails. */
  start(): Promise<void>;
  /** Takes it out of service until it is started: new calls are refused, its instances end when their calls have. */
  unload(): void;
  /** Runs the function's `close` for a session that has ended. */
  endSession(snapshot: SessionSnapshot, reason: SessionEnd): Promise<void>;
  /** Takes no more calls, waits for those in progress, unloads. */
  close(): Promise<void>;
  /** Calls `listener` after every change of `state`. */
  onChange(listener: () => void): void;
}
