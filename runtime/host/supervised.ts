// The server's end of its line to the supervisor: says how it is, and does what it is told.
import process from "node:process";
import {
  type FromChild,
  type Settings,
  SIGNALS,
  type Start,
  type StopSignal,
  SUPERVISED,
  type ToChild,
} from "./control.ts";
import type { ProcessServer } from "./serve.ts";
import { statusOf } from "./status.ts";

/** How often is looked at what may have changed. */
const TICK_MS = 100;

/** The line of a process to its supervisor. */
export interface SupervisorLink {
  /** Waits until it may listen. */
  start(settings: Settings): Promise<Start>;
  /** The files of a function have changed. */
  changed(name: string): void;
  /** Files of functions are being imported, or no more. */
  describing(active: boolean): void;
  /** Reports of the server and obeys, until it has ended; resolves to what it was ended for. */
  follow(server: ProcessServer, version: string): Promise<"retired" | "stopped">;
  /** Whether the supervisor is gone, and can do nothing any more that is its to do. */
  readonly isAbandoned: boolean;
}

/** The line to the supervisor, in a process that one has started. */
export function supervisorLink(): SupervisorLink | undefined {
  const isSupervised = Deno.env.get(SUPERVISED) !== undefined && process.connected;
  Deno.env.delete(SUPERVISED); // not for what functions start
  return isSupervised ? new Link() : undefined;
}

class Link implements SupervisorLink {
  readonly #started = Promise.withResolvers<Start>();
  #server: ProcessServer | undefined;
  #version = "";
  #place = 1;
  #isRetired = false;
  isAbandoned = false;

  constructor() {
    process.on("message", (message) => this.#onMessage(message as ToChild));
    process.on("disconnect", () => this.#onAbandoned());
    // Deno says nothing where the line breaks with something unread in it.
    const supervisor = Deno.ppid;
    setInterval(() => {
      if (Deno.ppid !== supervisor) this.#onAbandoned();
      if (this.#server) this.#reportBusy(this.#server);
    }, TICK_MS);
    // The supervisor decides: a terminal signals it too, and a function can send them to its own process.
    for (const signal of Object.keys(SIGNALS) as StopSignal[]) Deno.addSignalListener(signal, () => {});
    if (Deno.build.os !== "windows") Deno.addSignalListener("SIGHUP", () => {});
  }

  async start(settings: Settings): Promise<Start> {
    this.#send({ type: "hello", settings });
    const start = await this.#started.promise;
    this.#place = start.place;
    return start;
  }

  changed(name: string): void {
    this.#send({ type: "changed", function: name });
  }

  describing(active: boolean): void {
    this.#send({ type: "describing", active });
  }

  async follow(server: ProcessServer, version: string): Promise<"retired" | "stopped"> {
    this.#server = server;
    this.#version = version;
    const { grpc, http } = server.addresses;
    this.#send({ type: "listening", port: grpc.port, ...http && { httpPort: http.port } });
    this.#send({ type: "files", fingerprints: server.fingerprints() });
    server.ready.then(() => this.#send({ type: "ready", failed: failedFunctions(server) }));
    server.unfit.then(({ function: name }) => this.#send({ type: "unfit", function: name }));
    await server.finished;
    return this.#isRetired ? "retired" : "stopped";
  }

  // The supervisor is gone: nobody would replace this process, and the next supervisor wants its port.
  #onAbandoned(): void {
    this.isAbandoned = true;
    if (!this.#server) Deno.exit(1);
    // Again would mean at once.
    if (this.#server.state === "starting" || this.#server.state === "ready") this.#server.shutdown();
  }

  #reported = "";

  #reportBusy(server: ProcessServer): void {
    const functions = server.busy();
    const text = functions.join(" ");
    if (text !== this.#reported) this.#send({ type: "busy", functions });
    this.#reported = text;
  }

  #onMessage(message: ToChild): void {
    switch (message.type) {
      case "start":
        return this.#started.resolve(message);
      case "retire":
        this.#isRetired = true;
        return void this.#server?.shutdown({ graceMs: message.drainMs });
      case "shutdown":
        if (message.now !== undefined) Deno.exit(SIGNALS[message.now]);
        return void this.#server?.shutdown();
      case "reload":
        return void this.#server?.reload().then(() => this.#send({ type: "reloaded" }));
      case "ping":
        return this.#send({ type: "pong" });
      case "status":
        if (this.#server) this.#send({ type: "status", status: statusOf(this.#server, this.#version, this.#place) });
    }
  }

  #send(message: FromChild): void {
    if (process.connected) process.send!(message, () => {});
  }
}

/** The functions that cannot be called. */
export function failedFunctions({ functions }: Pick<ProcessServer, "functions">): readonly string[] {
  return [...functions.list()].filter(({ state }) => state === "failed").map(({ name }) => name);
}
