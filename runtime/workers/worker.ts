// Instances in Web Workers: a thread and a heap of their own, and the permissions that the host grants.
import { bootstrapModule } from "./bootstrap.ts";
import { type Launch, lostInstance } from "./instance.ts";
import type { FromInstance } from "./messages.ts";
import { type RemoteOptions, type RemotePort, startRemote } from "./remote.ts";
import type { FunctionSource } from "./runner.ts";
import { newestWorkerThread } from "./thread.ts";
import { inputBuffers } from "./transfer.ts";

/** The options of {@linkcode workerLauncher}. */
export interface WorkerOptions extends RemoteOptions {
  /** The function's file. */
  readonly file: URL;
  readonly version: string | undefined;
  /** Explicit: what is left out would be inherited. */
  readonly permissions: Deno.PermissionOptions;
  /** Told when a worker does not end: only the end of its process ends it. */
  readonly onStuck: () => void;
}

/** Runs a function in Web Workers. */
export function workerLauncher(options: WorkerOptions): Launch {
  return (signal) => startRemote(openWorker(options, sourceOf(options)), options, signal);
}

function sourceOf({ name, version, file }: WorkerOptions): FunctionSource {
  return { name, version, base: file.href };
}

function openWorker(options: WorkerOptions, source: FunctionSource): RemotePort {
  const { name, permissions, onStuck } = options;
  const worker = new Worker(bootstrapModule("./worker_main.ts", source), {
    type: "module",
    name,
    deno: { permissions },
  } as WorkerOptionsOfDeno);
  const thread = newestWorkerThread();
  const port: RemotePort = {
    post: (message) => worker.postMessage(message, inputBuffers(message)),
    onMessage: () => {},
    onGone: () => {},
    async terminate(isSilent) {
      worker.onmessage = worker.onerror = worker.onmessageerror = null;
      worker.terminate();
      if (isSilent && await thread.lingers()) onStuck();
    },
  };
  worker.onmessage = ({ data }: MessageEvent<FromInstance | readonly FromInstance[]>) => {
    if (Array.isArray(data)) data.forEach((message) => port.onMessage(message));
    else port.onMessage(data as FromInstance);
  };
  worker.onerror = (event) => {
    event.preventDefault(); // it would end this process
    port.onGone(lostInstance(name, "failed to start", event.error ?? event.message));
  };
  worker.onmessageerror = () => port.onGone(lostInstance(name, "sent a message that cannot be read"));
  return port;
}

interface WorkerOptionsOfDeno extends globalThis.WorkerOptions {
  readonly deno: { readonly permissions: Deno.PermissionOptions };
}
