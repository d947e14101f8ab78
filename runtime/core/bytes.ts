/** Parts end to end in one array. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return concatInto(new Uint8Array(lengthOf(parts)), parts);
}

/** Writes parts end to end into `bytes`, from its start. */
export function concatInto<T extends Uint8Array>(bytes: T, parts: readonly Uint8Array[]): T {
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The length of parts together, in bytes. */
export function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0);
}

/** Below that the memory of an array may be shared with others: Node's and protobufjs' pools are of 8 KiB. */
const MIN_FREED_BYTES = 16_384;
/** What may be left of a buffer beside the bytes that are freed: room for a stamp. */
const MAX_SLACK_BYTES = 64;

/**
 * Gives the memory of large bytes back, which nobody reads any more: left to the garbage collector, tensors make it run
 * every few calls. Does nothing where they are a part of a buffer.
 */
export function freeBytes({ byteLength, buffer }: Uint8Array): void {
  if (byteLength < MIN_FREED_BYTES || buffer.byteLength - byteLength > MAX_SLACK_BYTES) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
