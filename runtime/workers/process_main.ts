// What runs first in a child process: before the function's file is imported.
import { reportCrashes } from "./crash.ts";
import { importFunctionFile } from "./function_file.ts";
import { FrameWriter, readFrames, writeAll } from "./frames.ts";
import type { FromInstance, Port, ToInstance } from "./messages.ts";
import { type FunctionSource, runFunction } from "./runner.ts";

/**
 * Serves a function to the process that started this one. The first argument is the path of its socket; stdin holds what
 * it knows us by.
 */
export async function start(source: FunctionSource): Promise<void> {
  const exit = Deno.exit; // the function may put another in its place
  const conn = await connect(Deno.args[0]!);
  const writer = new FrameWriter(conn, true, () => exit(1));
  const port: Port<ToInstance, FromInstance> = { post: (message) => writer.write(message), onMessage: () => {} };
  // Where the server is gone nobody else would end this process.
  readFrames(conn, (message) => port.onMessage(message as ToInstance)).then(() => exit(0), (error) => {
    console.error(error);
    exit(1);
  });
  reportCrashes(port.post);
  await runFunction(port, source, () => importFunctionFile(source.base));
}

async function connect(path: string): Promise<Deno.Conn> {
  const token = new Uint8Array(await new Response(Deno.stdin.readable).arrayBuffer());
  const conn = await Deno.connect({ transport: "unix", path });
  await writeAll(conn, token);
  // Only this module may connect, not the function.
  Deno.permissions.revokeSync({ name: "read", path });
  Deno.permissions.revokeSync({ name: "write", path });
  Deno.permissions.revokeSync({ name: "net", host: `unix:${path}` });
  return conn;
}
