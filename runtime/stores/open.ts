// Which store a server is to use, as a text, and the store itself: what each needs is loaded only then.
import type { SessionStore } from "../middleware/session_store.ts";

/** Where sessions are kept. */
export type StoreChoice =
  | { readonly kind: "memory" }
  | { readonly kind: "kv"; readonly path: string }
  | { readonly kind: "redis"; readonly url: string };

const WANTED = "memory, kv:PATH or redis://HOST:PORT[/DB]";

/**
 * Reads `memory`, `kv:PATH` or `redis://[USER:PASSWORD@]HOST[:PORT][/DB]` (`rediss://` with TLS). Throws `RangeError`,
 * whose text holds no password.
 */
export function parseStoreChoice(text: string): StoreChoice {
  if (text === "memory") return { kind: "memory" };
  if (text.startsWith("kv:") && text.length > 3) return { kind: "kv", path: text.slice(3) };
  if (isRedisUrl(text)) return { kind: "redis", url: text };
  throw new RangeError(`it is ${JSON.stringify(withoutPassword(text))}, wanted ${WANTED}`);
}

/** Opens a store that outlives this process. Neither the file nor Redis has to be there yet. */
export async function openStore(choice: Exclude<StoreChoice, { readonly kind: "memory" }>): Promise<SessionStore> {
  if (choice.kind === "redis") {
    const { RedisSessionStore } = await import("./redis.ts");
    return new RedisSessionStore(choice.url);
  }
  if (!("openKv" in Deno)) {
    throw new TypeError('Cannot open sessions: Deno KV needs --unstable-kv, or "unstable": ["kv"] in deno.json');
  }
  const { KvSessionStore } = await import("./kv.ts");
  // Deno takes some texts for the addresses of servers.
  return new KvSessionStore(choice.path.startsWith("/") ? choice.path : `${Deno.cwd()}/${choice.path}`);
}

function isRedisUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^rediss?:$/.test(url.protocol) && url.hostname !== "" && /^(\/\d*)?$/.test(url.pathname) &&
    url.search === "" && url.hash === "";
}

function withoutPassword(text: string): string {
  return text.replace(/^(\w+:(\/\/)?)?.*@/s, "$1***@");
}
