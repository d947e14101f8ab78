/** How long values may come without a turn of the event loop, in milliseconds. */
const MAX_HELD_MS = 50;

/**
 * The values, for who collects them: no reader holds them back, so a function that never waits would keep the server from
 * everything else, such as hearing that its client left. The event loop gets a turn every 50 ms.
 */
export async function* withTurns<T>(values: AsyncIterable<T, void, undefined>): AsyncGenerator<T, void, undefined> {
  let turnedAt = performance.now();
  for await (const value of values) {
    yield value;
    if (performance.now() - turnedAt < MAX_HELD_MS) continue;
    await new Promise((resolve) => setTimeout(resolve, 0));
    turnedAt = performance.now();
  }
}
