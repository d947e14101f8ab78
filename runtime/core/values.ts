/** Names a typed value that an interceptor hands to handlers. */
export interface ContextKey<T> {
  /** Tells keys apart, in a worker too: keys of one name are the same. */
  readonly name: string;
  /** The value where no interceptor set one. */
  readonly defaultValue: T;
}

/** Typed values from interceptors. */
export interface ContextValues {
  /** The value for `key`, or the key's default. */
  get<T>(key: ContextKey<T>): T;
  /** Every value that is set, by its key's name. */
  entries(): Iterable<readonly [name: string, value: unknown]>;
}

/**
 * Makes a key for a value that an interceptor hands to handlers. `name` must be unique among the keys of a server; the
 * value must be structured-cloneable to reach a function in a worker or a process.
 */
export function createContextKey<T>(name: string, defaultValue: T): ContextKey<T> {
  return { name, defaultValue };
}

/** No values at all: every key has its default. */
export const NO_VALUES: ContextValues = valuesOf(new Map());

/** `values` with one more. */
export function withValue<T>(values: ContextValues, key: ContextKey<T>, value: T): ContextValues {
  return valuesOf(new Map([...values.entries(), [key.name, value]]));
}

/** Values by their keys' names. */
export function valuesOf(values: ReadonlyMap<string, unknown>): ContextValues {
  return {
    get: <T>(key: ContextKey<T>) => (values.has(key.name) ? values.get(key.name) as T : key.defaultValue),
    entries: () => values.entries(),
  };
}
