// Keeps out the pages of others: a browser could be made to call a server that only its user may reach.
import { quote } from "../../core/error.ts";
import { HttpError } from "../../protocols/http.ts";

/** Who may call. */
export interface OriginOptions {
  /** Origins whose pages may call, "*" = any. */
  readonly corsOrigins: readonly string[];
  /** The server listens to its own machine only. */
  readonly isLoopback: boolean;
}

/** Whether whoever listens there hears only its own machine. */
export function isLoopback(hostname: string): boolean {
  return /^(127\.[\d.]+|::1|localhost)$/.test(hostname);
}

/** Why a request is refused, whatever it asks for; undefined where it is not. */
export function refusalOf({ headers }: Request, { corsOrigins, isLoopback }: OriginOptions): HttpError | undefined {
  if (corsOrigins.includes("*")) return undefined;
  const host = headers.get("host") ?? "";
  if (isLoopback && !isOwnName(host, corsOrigins)) {
    const why = `this server listens to its own machine only (option corsOrigins allows others)`;
    return new HttpError(421, "permission_denied", `Cannot be called as host ${quote(host, 200)}: ${why}`);
  }
  const origin = headers.get("origin");
  if (origin === null || corsOrigins.includes(origin)) return undefined;
  if (URL.canParse(origin) && new URL(origin).host === host) return undefined;
  return new HttpError(
    403,
    "permission_denied",
    `Cannot be called from a page of origin ${quote(origin, 200)}: it is not allowed (option corsOrigins)`,
  );
}

// Whoever owns a domain can have a name of it lead to this machine (DNS rebinding): its page and this server are then of
// one origin. Addresses, and names without a dot, are nobody's to give.
function isOwnName(host: string, corsOrigins: readonly string[]): boolean {
  if (!URL.canParse(`http://${host}`)) return true; // none: no browser leaves it out
  const { hostname } = new URL(`http://${host}`);
  return !hostname.includes(".") || /^[\d.]+$|\.localhost$/.test(hostname) ||
    corsOrigins.some((origin) => new URL(origin).hostname === hostname);
}
