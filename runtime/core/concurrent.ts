/** The results of `action` for each item, in their order; at most `limit` of them run at once. */
export async function mapConcurrently<T, R>(
  items: readonly T[],
  limit: number,
  action: (item: T) => Promise<R>,
): Promise<R[]> {
  const results = new Array<R>(items.length);
  let taken = 0;
  const worker = async () => {
    while (taken < items.length) {
      const index = taken++;
      results[index] = await action(items[index]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}
