/** Names a typed value that an interceptor hands to handlers. */
export interface ContextKey<T> {
  /** Tells keys apart. */
  readonly id: symbol;
  /** The value where no interceptor set one. */
  readonly defaultValue: T;
}

/** Typed values from interceptors. */
export interface ContextValues {
  /** The value for `key`, or the key's default. */
  get<T>(key: ContextKey<T>): T;
}

/** Makes a key for a value that an interceptor hands to handlers. */
export function createContextKey<T>(description: string, defaultValue: T): ContextKey<T> {
  return { id: Symbol(description), defaultValue };
}

/** No values at all: every key has its default. */
export const NO_VALUES: ContextValues = { get: (key) => key.defaultValue };

/** `values` with one more. */
export function withValue<T>(values: ContextValues, key: ContextKey<T>, value: T): ContextValues {
  return { get: <V>(asked: ContextKey<V>) => (asked.id === key.id ? value as unknown as V : values.get(asked)) };
}
