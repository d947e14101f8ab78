// What runs first in a worker: before the function's file is imported.
import { reportCrashes } from "./crash.ts";
import { importFunctionFile } from "./function_file.ts";
import type { FromInstance, Port, ToInstance } from "./messages.ts";
import { Outbox } from "./outbox.ts";
import { type FunctionSource, runFunction } from "./runner.ts";

const scope = globalThis as unknown as Worker & { close(): void };

/** Serves a function to the thread that made this worker. */
export function start(source: FunctionSource): void {
  const post = scope.postMessage.bind(scope);
  const outbox = new Outbox((messages, buffers) => post(messages, buffers));
  const send = (message: FromInstance) => outbox.send(message);
  const port: Port<ToInstance, FromInstance> = { post: send, onMessage: () => {} };
  scope.onmessage = ({ data }) => port.onMessage(data);

  reportCrashes(send);
  // A worker that closes itself goes silent. Deno.exit() comes by here too.
  scope.addEventListener("unload", () => send({ type: "exiting" }));
  const close = scope.close.bind(scope);
  scope.close = () => {
    send({ type: "exiting" });
    close();
  };

  runFunction(port, source, () => importFunctionFile(source.base));
}
