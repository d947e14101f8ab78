/** What `map` makes of each value, as it is read; without an async generator's price for each. */
export function mapValues<T, R>(
  values: AsyncIterable<T, void, undefined>,
  map: (value: T) => R,
): AsyncIterableIterator<R, void, undefined> {
  const iterator = values[Symbol.asyncIterator]();
  const leave = async () => void await iterator.return?.();
  const mapped = (result: IteratorResult<T, void>): IteratorResult<R, void> => {
    if (result.done) return result;
    try {
      return { done: false, value: map(result.value) };
    } catch (error) {
      leave().catch(() => {});
      throw error;
    }
  };
  return {
    next: () => iterator.next().then(mapped),
    async return() {
      await leave();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
