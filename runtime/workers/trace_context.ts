// What a handler in an instance fetches continues the call's trace, where Deno traces: by what it has registered for
// @opentelemetry/api, which itself stays out of instances. One in a process traces only if it may read the environment.

/** The part of the registered API that is used here. */
interface TracingApi {
  readonly context?: { active(): unknown; with<R>(context: unknown, action: () => R): R };
  readonly propagation?: { extract(context: unknown, carrier: object, getter: Getter): unknown };
}

interface Getter {
  get(carrier: Readonly<Record<string, string>>, key: string): string | undefined;
  keys(carrier: Readonly<Record<string, string>>): string[];
}

const GETTER: Getter = { get: (carrier, key) => carrier[key], keys: Object.keys };

const registered = globalThis as Readonly<Record<symbol, TracingApi | undefined>>;
const { context, propagation } = registered[Symbol.for("opentelemetry.js.api.1")] ?? {};

/** Runs `action`, and what it starts, in the context that a call's metadata names. */
export function inTraceOf<R>(
  metadata: Iterable<readonly [name: string, value: string]> | undefined,
  action: () => R,
): R {
  if (!context || !propagation || !metadata) return action();
  return context.with(extract(context.active(), metadata) ?? context.active(), action);
}

// Deno's parser of baggage throws.
function extract(above: unknown, metadata: Iterable<readonly [name: string, value: string]>): unknown {
  try {
    return propagation!.extract(above, Object.fromEntries(metadata), GETTER);
  } catch {
    return undefined;
  }
}
