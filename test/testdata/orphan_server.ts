// Starts a function in a process and prints its pid; the function never ends. Argument: the function's file.
import { toFlags } from "../../runtime/workers/permissions.ts";
import { processLauncher } from "../../runtime/workers/process.ts";
import { NEVER, SILENT, streamCall } from "../harness/calls.ts";
import { children } from "../harness/child.ts";

const path = Deno.args[0]!;
const options = { name: "model", version: undefined, heapMb: undefined, log: SILENT };
const launch = processLauncher({ ...options, file: new URL(`file://${path}`), flags: toFlags({}, [path]) });
const instance = await launch(NEVER);
for await (const _reply of instance.run(streamCall()).replies) console.log(children()[0]);
