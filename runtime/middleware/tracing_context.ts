// An iterable whose values are made in a context of OpenTelemetry: what a handler in this event loop fetches carries it.
import { type Context, context } from "@opentelemetry/api";

/** The values of `start()`, which is called when the first is asked for, as that is. */
export function inContext<T>(
  active: Context,
  start: () => AsyncIterable<T, void, undefined>,
): AsyncIterable<T, void, undefined> {
  const within = <R>(action: () => R): R => context.with(active, action);
  return {
    [Symbol.asyncIterator]() {
      const iterator = within(() => start()[Symbol.asyncIterator]());
      return {
        next: () => within(() => iterator.next()),
        return: async () => {
          await within(() => iterator.return?.());
          return { done: true, value: undefined };
        },
      };
    },
  };
}
