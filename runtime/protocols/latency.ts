// Stamps latency_ms into an answer after it is encoded, so that the encoding is counted too.
import { concatInto, lengthOf } from "../core/bytes.ts";
import type { MethodHandler } from "./codec.ts";

/** A message whose `latency_ms` is not filled in yet. */
export interface TimedMessage<T = object> {
  /** When its request began to be decoded, by `performance.now()`. */
  readonly since: number;
  readonly message: T;
}

/** Encodes a message in parts, which end to end are the message; gets the message type's own encoder. */
export type EncodeParts<T> = (message: T, encode: (message: unknown) => Uint8Array) => readonly Uint8Array[];

/** What the field takes at most, with its tag. */
const STAMP_BYTES = 11;

/** An encoder of {@linkcode TimedMessage}s; `round` makes the field's value of milliseconds. */
export function encodeWithLatency<T>(
  round: (ms: number) => number,
  encodeParts: EncodeParts<T>,
): NonNullable<MethodHandler["encode"]> {
  return (timed, encode) => {
    const { since, message } = timed as TimedMessage<T>;
    const parts = encodeParts(message, encode);
    const length = lengthOf(parts);
    const bytes = concatInto(new Uint8Array(length + STAMP_BYTES), parts);
    const stamp = encode({ latency_ms: round(performance.now() - since) });
    bytes.set(stamp, length);
    return bytes.subarray(0, length + stamp.length);
  };
}
