// A server as a process: says what it serves and how to call it, and stops when it is told to.
import denoJson from "../../deno.json" with { type: "json" };
import { type Logger, withFields } from "../core/log.ts";
import { hasGoawayFault } from "../transports/grpc/http2_patch.ts";
import { formatAddress } from "./address.ts";
import type { Config } from "./config.ts";
import { type Role, SIGNALS, type Start } from "./control.ts";
import { openControlSocket } from "./control_socket.ts";
import { ConfigError } from "./error.ts";
import { keepAlive } from "./keep_alive.ts";
import { formatListing, httpUrl } from "./listing.ts";
import { createStderrLogger } from "./log_format.ts";
import { httpPortOf } from "./ports.ts";
import { type ProcessServer, serve } from "./serve.ts";
import { removeFolder } from "./shared_folder.ts";
import { mergeStatuses, statusOf } from "./status.ts";
import { openStore } from "../stores/open.ts";
import type { SessionStore } from "../middleware/session_store.ts";
import { failedFunctions, type SupervisorLink } from "./supervised.ts";

const LISTEN_FAILURES: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is taken",
  EACCES: "it is not permitted",
  EADDRNOTAVAIL: "this machine has no such address",
  EINVAL: "this machine has no such address",
  ENOTFOUND: "there is no such host",
  EAI_AGAIN: "there is no such host",
};

/** What the command is to do, with the number of processes decided. */
export interface ServerConfig extends Config {
  readonly processes: number;
}

/** Serves until it is told to stop; resolves to the exit status. `alone` says why there is no supervisor. */
export async function runServer(
  config: ServerConfig,
  link: SupervisorLink | undefined,
  alone: string | undefined,
): Promise<number> {
  const common = createStderrLogger(config.logFormat, config.logLevel);
  keepAlive(common);
  const start = await link?.start(config);
  const log = start && config.processes > 1 ? withFields(common, { process: start.place }) : common;
  const role = start?.role ?? "first";
  const sessions = await openSessions(config, start);
  const server = await listen(config, start, sessions, link, log);
  if (role === "first") warn(config, log, alone);
  const end = link ? link.follow(server, denoJson.version) : runAlone(server, log);
  announce(config, server, role, log);
  const why = await end;
  await sessions?.close();
  if (link?.isAbandoned && start?.folder !== undefined) removeFolder(start.folder);
  log.info(why);
  return 0;
}

// A client that comes back may come to another process.
async function openSessions(
  { sessions, hasChosenSessions }: ServerConfig,
  start: Start | undefined,
): Promise<SessionStore | undefined> {
  if (sessions.kind !== "memory") return await openStore(sessions);
  if (hasChosenSessions || start?.folder === undefined) return undefined;
  return await openStore({ kind: "kv", path: `${start.folder}/sessions.db` });
}

function warn({ processes, sessions, hasChosenSessions }: ServerConfig, log: Logger, alone: string | undefined): void {
  if (processes > 1 && hasChosenSessions && sessions.kind === "memory") {
    log.warn(
      `sessions are kept in the memory of each of the ${processes} processes: a client that comes back may not find its own`,
    );
  }
  const version = Deno.version.deno;
  if (hasGoawayFault(version)) {
    log.warn(
      `Deno ${version} can be ended by a peer's HTTP/2 GOAWAY (denoland/deno#36788); a work-around is in place, Deno 2.9.3 does not need it`,
    );
  }
  if (alone !== undefined) log.info(`no supervisor: ${alone}; a crash ends this server`);
}

interface ListenFailure {
  readonly code?: string;
  readonly syscall?: string;
}

async function listen(
  config: ServerConfig,
  start: Start | undefined,
  sessions: SessionStore | undefined,
  link: SupervisorLink | undefined,
  log: Logger,
): Promise<ProcessServer> {
  const { hostname, corsOrigins, graceMs, isolation, watch, accessLog } = config;
  const { port, httpPort, reusePort, verdicts, isCareful, restarts } = start ??
    {
      port: config.port,
      httpPort: httpPortOf(config, log),
      reusePort: false,
      verdicts: {},
      isCareful: false,
      restarts: 0,
    };
  try {
    return await serve(config.functionsDir, {
      grpc: { hostname, port, reusePort },
      ...httpPort !== undefined && { http: { hostname, port: httpPort, reusePort, corsOrigins } },
      limits: config,
      graceMs,
      accessLog,
      log,
      isolation,
      watch,
      verdicts,
      isCareful,
      restarts,
      isQuiet: start !== undefined && start.place > 1,
      ...start && { process: { place: start.place, count: config.processes } },
      ...sessions && { sessions },
      ...start?.folder !== undefined && { peersFolder: start.folder },
      ...link && {
        onChanged: (name) => link.changed(name),
        onDescribing: (active) => link.describing(active),
      },
    });
  } catch (error) {
    const { code = "", syscall, port: failed = port } = error as Partial<Deno.NetAddr> & ListenFailure;
    if (syscall === undefined) throw error;
    const address = formatAddress({ hostname, port: failed });
    throw new ConfigError(`Cannot listen on ${address}: ${LISTEN_FAILURES[code] ?? code}`);
  }
}

function announce({ logFormat, processes }: ServerConfig, server: ProcessServer, role: Role, log: Logger): void {
  const address = `grpc://${formatAddress(server.addresses.grpc)}`;
  const entries = [...server.functions.list()];
  if (role !== "first") log[role === "replacement" ? "info" : "debug"]("serving again", { address, pid: Deno.pid });
  else if (logFormat === "text") console.log(formatListing(entries, server.addresses, denoJson.version));
  else {
    const { http } = server.addresses;
    log.info("serving", { address, ...http && { http: httpUrl(http) }, functions: entries });
  }
  // The supervisor says when all of them are.
  if (processes > 1 && role !== "replacement") return;
  const start = performance.now();
  server.ready.then(() => {
    if (server.state !== "ready") return;
    const failed = failedFunctions(server);
    if (failed.length > 0) log.warn(`not all functions can be called: ${failed.join(", ")} failed`);
    else log.info("ready", { ms: Math.round(performance.now() - start) });
  });
}

async function runAlone(server: ProcessServer, log: Logger): Promise<"stopped"> {
  const { port } = server.addresses.grpc;
  const status = () => Promise.resolve(mergeStatuses([statusOf(server, denoJson.version)], 1));
  const closeSocket = openControlSocket(port, status, log);
  const unlisten = Object.entries(SIGNALS).map(([signal, exitCode]) =>
    onSignal(signal as Deno.Signal, () => {
      if (server.state === "draining" || server.state === "stopped") Deno.exit(exitCode);
      log.info(`${signal}: finishing the calls in progress; once more to stop now`);
      server.shutdown();
    })
  );
  if (Deno.build.os !== "windows") unlisten.push(onSignal("SIGHUP", () => void server.reload()));
  server.unfit.then(({ function: name }) => {
    log.error(`A worker of function "${name}" cannot be ended: its thread goes on, since no supervisor is there`);
  });
  try {
    await server.finished;
    return "stopped";
  } finally {
    closeSocket();
    unlisten.forEach((remove) => remove());
  }
}

function onSignal(signal: Deno.Signal, listener: () => void): () => void {
  Deno.addSignalListener(signal, listener);
  return () => Deno.removeSignalListener(signal, listener);
}
