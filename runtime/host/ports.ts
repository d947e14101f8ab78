// Whether a server can have the ports that it wants. Light: the supervisor asks, since processes that share a port do not
// find each other there.
import type { Logger } from "../core/log.ts";
import { formatAddress } from "./address.ts";

/** What the configuration says of HTTP. */
export interface HttpPortSettings {
  readonly hostname: string;
  /** 0 = any, undefined = none. */
  readonly httpPort: number | undefined;
  /** It is not the default. */
  readonly hasChosenHttpPort: boolean;
}

/** Whether somebody listens there. */
export function isTaken(hostname: string, port: number): boolean {
  if (port === 0) return false;
  try {
    // A socket that does not share its port finds others, even one that does: another tensorlet's.
    Deno.listen({ hostname, port }).close();
    return false;
  } catch (error) {
    return error instanceof Deno.errors.AddrInUse; // anything else who serves meets as well, and says so
  }
}

/** The port for HTTP, undefined where there is to be none: whoever has the default one keeps it, which is logged. */
export function httpPortOf(settings: HttpPortSettings, log: Logger): number | undefined {
  const { hostname, httpPort, hasChosenHttpPort } = settings;
  if (httpPort === undefined || hasChosenHttpPort || !isTaken(hostname, httpPort)) return httpPort;
  log.warn(`no HTTP: ${formatAddress({ hostname, port: httpPort })} is taken; --http-port chooses another port`);
  return undefined;
}
