// `deno run -A mod.ts`: starts a server, says what it serves, and stops it on a signal.
import denoJson from "../../deno.json" with { type: "json" };
import { hasGoawayFault } from "../transports/grpc/http2_patch.ts";
import { type Config, parseConfig } from "./config.ts";
import { ConfigError } from "./error.ts";
import { formatListing } from "./listing.ts";
import { createStderrLogger } from "./log_format.ts";
import { serve, type Server } from "./serve.ts";
import type { Logger } from "../core/log.ts";

const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const;
/** Misuse of the command line, as for shells. */
const USAGE_ERROR = 2;

const LISTEN_FAILURES: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is taken",
  EACCES: "it is not permitted",
  EADDRNOTAVAIL: "this machine has no such address",
  EINVAL: "this machine has no such address",
  ENOTFOUND: "there is no such host",
  EAI_AGAIN: "there is no such host",
};

/** Runs the command; resolves to the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  try {
    const config = parseConfig(args, denoJson.version);
    if ("print" in config) {
      console.log(config.print.trimEnd());
      return 0;
    }
    return await run(config);
  } catch (error) {
    if (error instanceof ConfigError) {
      console.error(`error: ${error.message}`);
      return USAGE_ERROR;
    }
    console.error(error);
    return 1;
  }
}

async function run(config: Config): Promise<number> {
  const log = createStderrLogger(config.logFormat, config.logLevel);
  keepAlive(log);
  const version = Deno.version.deno;
  if (hasGoawayFault(version)) {
    log.warn(
      `Deno ${version} can be ended by a peer's HTTP/2 GOAWAY (denoland/deno#36788); a work-around is in place, Deno 2.9.3 does not need it`,
    );
  }
  const { hostname, port, graceMs } = config;
  const server = await listenOn(
    config,
    () => serve(config.functionsDir, { grpc: { hostname, port }, limits: config, graceMs, log }),
  );
  const unlisten = stopOnSignal(server, log);
  const { grpc } = server.addresses;
  const entries = [...server.functions.list()];
  if (config.logFormat === "text") console.log(formatListing(entries, grpc, denoJson.version));
  else log.info("serving", { address: `grpc://${grpc.hostname}:${grpc.port}`, functions: entries });
  const start = performance.now();
  server.ready.then(() => {
    if (server.state !== "ready") return;
    const failed = [...server.functions.list()].filter(({ state }) => state === "failed").map(({ name }) => name);
    if (failed.length > 0) log.warn(`not all functions can be called: ${failed.join(", ")} failed`);
    else log.info("ready", { ms: Math.round(performance.now() - start) });
  });
  await server.finished;
  unlisten();
  log.info("stopped");
  return 0;
}

async function listenOn({ hostname, port }: Config, start: () => Promise<Server>): Promise<Server> {
  try {
    return await start();
  } catch (error) {
    const { code = "", syscall } = error as { readonly code?: string; readonly syscall?: string };
    if (syscall === undefined) throw error;
    throw new ConfigError(`Cannot listen on ${hostname}:${port}: ${LISTEN_FAILURES[code] ?? code}`);
  }
}

// A function's stray timer or promise that fails must not take the others' calls with it.
function keepAlive(log: Logger): void {
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    log.error("A promise that nobody waited for failed", { cause: event.reason });
  });
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    log.error("A callback failed", { cause: event.error });
  });
}

function stopOnSignal(server: Server, log: Logger): () => void {
  const listeners = Object.entries(SIGNALS).map(([signal, exitCode]) => {
    const listener = () => {
      if (server.state === "draining" || server.state === "stopped") Deno.exit(exitCode);
      log.info(`${signal}: finishing the calls in progress; once more to stop now`);
      server.shutdown();
    };
    Deno.addSignalListener(signal as Deno.Signal, listener);
    return () => Deno.removeSignalListener(signal as Deno.Signal, listener);
  });
  return () => listeners.forEach((remove) => remove());
}
