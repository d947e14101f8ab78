// The supervisor as a process: starts the server's processes with its own command line, and hears the signals.
import { type ChildProcess, spawn } from "node:child_process";
import { formatAddress } from "./address.ts";
import type { ProcessEvents, ServerProcess } from "./child.ts";
import { type FromChild, type Settings, SIGNALS, type StopSignal, SUPERVISED, type ToChild } from "./control.ts";
import { openControlSocket } from "./control_socket.ts";
import { Heartbeat } from "./heartbeat.ts";
import { keepAlive } from "./keep_alive.ts";
import { createStderrLogger } from "./log_format.ts";
import { wrapper } from "../workers/wrapper.ts";
import { httpPortOf, isTaken } from "./ports.ts";
import { makeFolder, removeFolder } from "./shared_folder.ts";
import { Supervisor } from "./supervisor.ts";

/** Runs a server by `command`, the arguments of this Deno, again and again; resolves to the exit status. */
export async function supervise(command: readonly string[]): Promise<number> {
  let log = createStderrLogger("text", "info");
  keepAlive(log);
  let closeSocket = () => {};
  let folder: string | undefined;
  const supervisor = new Supervisor({
    spawn: (events) => spawnServer(command, events),
    createLog: (settings) => settings ? log = createStderrLogger(settings.logFormat, settings.logLevel) : log,
    refusesPort: (settings) => refusesPort(settings.hostname, settings.port) || refusesHttpPort(settings),
    httpPortOf: (settings) => httpPortOf(settings, log),
    makeFolder: () => folder = makeFolder(),
    reusePort: Deno.build.os === "linux",
    onListening: (port) => closeSocket = openControlSocket(port, () => supervisor.status(), log),
  });
  const unlisten = [
    ...Object.keys(SIGNALS).map((signal) =>
      onSignal(signal as StopSignal, () => supervisor.stop(signal as StopSignal))
    ),
    ...Deno.build.os === "windows" ? [] : [onSignal("SIGHUP", () => supervisor.reload())],
  ];
  try {
    return await supervisor.finished;
  } finally {
    closeSocket();
    if (folder !== undefined) removeFolder(folder);
    unlisten.forEach((remove) => remove());
  }
}

function onSignal(signal: Deno.Signal, listener: () => void): () => void {
  Deno.addSignalListener(signal, listener);
  return () => Deno.removeSignalListener(signal, listener);
}

function refusesHttpPort({ hostname, httpPort = 0, hasChosenHttpPort }: Settings): boolean {
  return hasChosenHttpPort && refusesPort(hostname, httpPort);
}

function refusesPort(hostname: string, port: number): boolean {
  if (!isTaken(hostname, port)) return false;
  console.error(`error: Cannot listen on ${formatAddress({ hostname, port })}: the port is taken`);
  return true;
}

// Deno's parser of baggage, which nothing here reads, throws: a call with one that is malformed would never be answered.
const DEFAULT_ENV = { OTEL_PROPAGATORS: "tracecontext" };

/** Starts a server's process. */
export function spawnServer(command: readonly string[], events: ProcessEvents): ServerProcess {
  let child: ChildProcess;
  // Deno opens its debugger to every local user on SIGUSR1, which a function may send to its own process.
  const [program, ...before] = [...wrapper("env", "--block-signal=USR1"), Deno.execPath()];
  try {
    child = spawn(program!, [...before, ...command], {
      stdio: ["inherit", "inherit", "inherit", "ipc"],
      // On a terminal Deno would ask whether a function may do what it was not granted.
      env: { ...DEFAULT_ENV, ...Deno.env.toObject(), [SUPERVISED]: "1", DENO_NO_PROMPT: "1" },
    });
  } catch (error) {
    queueMicrotask(() => events.onExit({ code: null, signal: null, error: String(error) }));
    return { pid: 0, send: () => {}, kill: () => {} };
  }
  let ended = false;
  let heartbeat: Heartbeat | undefined;
  const end = (exit: Parameters<ProcessEvents["onExit"]>[0]) => {
    if (ended) return;
    ended = true;
    heartbeat?.stop();
    events.onExit(exit);
  };
  const send = (message: ToChild) => void (child.connected && child.send(message, () => {}));
  const kill = () => void child.kill("SIGKILL");
  child.on("exit", (code, signal) => end({ code, signal }));
  child.on("error", (error) => {
    // Of a process that runs it is a message that did not arrive; its exit is about to be told.
    if (child.pid === undefined) end({ code: null, signal: null, error: String(error) });
  });
  child.on("message", (message: FromChild) => {
    if (message.type === "listening") heartbeat ??= new Heartbeat(() => send({ type: "ping" }), kill);
    heartbeat?.heard();
    events.onMessage(message);
  });
  return {
    pid: child.pid ?? 0,
    send,
    kill,
  };
}
