// `deno run -A mod.ts list`: the functions of a running server, or those of a folder.
import { parseListConfig } from "./config.ts";
import { askServer } from "./control_socket.ts";
import { formatStatus, type ListedFunction } from "./listing.ts";
import { findFunctions, folderUrl, importFunction } from "./loader.ts";

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

async function describeFolder(dir: string): Promise<readonly ListedFunction[]> {
  const files = await findFunctions(folderUrl(dir));
  return await Promise.all(files.map(async (file): Promise<ListedFunction> => {
    try {
      const { name, version, kinds } = await importFunction(file);
      return { name, version, state: "not running", kinds };
    } catch {
      return { name: file.name, version: file.version ?? "1", state: "failed", kinds: [] };
    }
  }));
}
