// `deno run -A mod.ts`: which of the commands it is. Light: a supervisor must not hold what only a server needs.
import denoJson from "../../deno.json" with { type: "json" };
import { SUPERVISED } from "./control.ts";
import { ConfigError } from "./error.ts";

/** Misuse of the command line, as for shells. */
const USAGE_ERROR = 2;

/** Runs the command; resolves to the exit status. */
export async function main(args: readonly string[]): Promise<number> {
  try {
    if (args[0] === "list") return await (await import("./list_command.ts")).list(args.slice(1), denoJson.version);
    if (args[0] === "call") return await (await import("../call/call_command.ts")).call(args.slice(1));
    if (args[0] === "init") return await (await import("./init_command.ts")).init(args.slice(1));
    if (args[0] === "generate") return await (await import("./generate_command.ts")).generate(args.slice(1));
    if (Deno.env.has(SUPERVISED)) return await serveHere(args);
    const { supervisorCommand } = await import("./command_line.ts");
    const command = supervisorCommand(args);
    if (typeof command === "string") return await serveHere(args, command);
    return await (await import("./supervise.ts")).supervise(command);
  } catch (error) {
    if (error instanceof ConfigError) {
      console.error(`error: ${error.message}`);
      return USAGE_ERROR;
    }
    console.error(error);
    return 1;
  }
}

async function serveHere(args: readonly string[], alone?: string): Promise<number> {
  const link = (await import("./supervised.ts")).supervisorLink();
  const { parseConfig } = await import("./config.ts");
  const config = parseConfig(args, denoJson.version);
  if ("print" in config) {
    console.log(config.print.trimEnd());
    return 0;
  }
  const { countProcesses, obstacleToProcesses } = await import("./processes.ts");
  const obstacle = obstacleToProcesses(link ? undefined : alone ?? "this process has no line to one");
  const processes = countProcesses(config.processes, obstacle);
  const { runServer } = await import("./serve_command.ts");
  return await runServer({ ...config, processes }, link, config.supervisor ? alone : undefined);
}
