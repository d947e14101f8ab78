// How many processes serve.
import { ConfigError } from "./error.ts";

/** What the command line asks for: a number, or as many as there are processors for this process. */
export type ProcessCount = number | "auto";

/**
 * How many processes there are to be. `obstacle`: why there cannot be several; "auto" is one then, and another number
 * throws `ConfigError`.
 */
export function countProcesses(asked: ProcessCount, obstacle: string | undefined): number {
  // Deno counts what the affinity and the control group leave to this process.
  if (obstacle === undefined) return asked === "auto" ? navigator.hardwareConcurrency : asked;
  if (asked === "auto" || asked === 1) return 1;
  throw new ConfigError(`Cannot serve with ${asked} processes: ${obstacle}`);
}

/** Why this process can only serve alone. `alone`: why there is no supervisor, where there is none. */
export function obstacleToProcesses(alone: string | undefined, os: string = Deno.build.os): string | undefined {
  if (alone !== undefined) return `a supervisor would have to start them, and there is none: ${alone}`;
  // Other systems let processes share a port, too, but give one of them all connections.
  return os === "linux" ? undefined : `only Linux spreads connections over processes, and this is ${os}`;
}
