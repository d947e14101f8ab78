/** Parts end to end in one array, with `room` bytes left behind them. */
export function concatBytes(parts: readonly Uint8Array[], room = 0): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(lengthOf(parts) + room);
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
