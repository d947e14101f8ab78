// Stamps latency_ms into an answer after it is encoded, so that the encoding is counted too.
import type { MethodHandler } from "./codec.ts";

/** A message whose `latency_ms` is not filled in yet. */
export interface TimedMessage {
  /** When its request began to be decoded, by `performance.now()`. */
  readonly since: number;
  readonly message: object;
}

/** An encoder of {@linkcode TimedMessage}s; `round` makes the field's value of milliseconds. */
export function encodeWithLatency(round: (ms: number) => number): NonNullable<MethodHandler["encode"]> {
  return (timed, encode) => {
    const { since, message } = timed as TimedMessage;
    const body = encode(message);
    // Encoded messages joined end to end are one message: protobuf's merge rule.
    const stamp = encode({ latency_ms: round(performance.now() - since) });
    const bytes = new Uint8Array(body.length + stamp.length);
    bytes.set(body);
    bytes.set(stamp, body.length);
    return bytes;
  };
}
