// `deno run -A mod.ts list`: the functions of a running server, or those of a folder.
import { createLogger } from "../core/log.ts";
import { parseListConfig } from "./config.ts";
import { askServer } from "./control_socket.ts";
import { formatStatus, type ListedFunction } from "./listing.ts";
import { describeFunctions } from "./launch.ts";
import { folderUrl } from "./loader.ts";
import { shownPermissions } from "./manifest.ts";
import { scanFolder } from "./scan.ts";

/** Runs the command; resolves to the exit status. */
export async function list(args: readonly string[], version: string): Promise<number> {
  const config = parseListConfig(args);
  if ("print" in config) {
    console.log(config.print.trimEnd());
    return 0;
  }
  const { functionsDir, port, json } = config;
  let answer;
  try {
    answer = await askServer(port);
  } catch (error) {
    console.error(`error: ${(error as Error).message}`);
    return 1;
  }
  const listed = answer
    ? { ...answer.status ?? { version, address: `:${port}`, state: "restarting", functions: [] }, pid: answer.pid }
    : { version, state: "not running", folder: functionsDir, port, functions: await describeFolder(functionsDir) };
  console.log(json ? JSON.stringify(listed, null, 2) : formatStatus(listed));
  return 0;
}

// Without running them: described as a server does it.
async function describeFolder(dir: string): Promise<readonly ListedFunction[]> {
  const functions = await scanFolder(folderUrl(dir));
  const described = await describeFunctions(functions, { log: createLogger(() => {}), onStuck: () => {}, reloads: 0 });
  return functions.map((found): ListedFunction => {
    const { isolation, instances } = found.settings;
    const settings = {
      isolation,
      instances: 0,
      maxInstances: instances.max,
      permissions: shownPermissions(found.settings),
    };
    const result = described.get(found)!;
    if (result.status === "rejected") {
      return { name: found.name, version: found.version ?? "1", state: "failed", kinds: [], ...settings };
    }
    const { name, version, kinds, description, input, output, params } = result.value;
    return { name, version, state: "not running", kinds, ...settings, description, input, output, params };
  });
}
