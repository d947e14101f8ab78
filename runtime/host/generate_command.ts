// `deno run -A mod.ts generate MODEL`: a typed client of a served function.
import { splitVersion, unknownModel } from "../core/catalog.ts";
import { createLogger } from "../core/log.ts";
import { type FunctionSignature, generateModule } from "../generate/module.ts";
import { formatAddress } from "./address.ts";
import { type GenerateConfig, parseGenerateConfig } from "./config.ts";
import { askServer } from "./control_socket.ts";
import { ConfigError } from "./error.ts";
import { describeFunctions } from "./launch.ts";
import { folderUrl } from "./loader.ts";
import { scanFolder } from "./scan.ts";

/** Runs the command; resolves to the exit status. Throws `ConfigError`. */
export async function generate(args: readonly string[]): Promise<number> {
  const config = parseGenerateConfig(args);
  if ("print" in config) {
    console.log(config.print.trimEnd());
    return 0;
  }
  const { functions, address } = await findSignatures(config);
  const signature = choose(functions, config.model);
  if (signature.kinds.length === 0) {
    console.error(`error: Function "${signature.name}" cannot be loaded, so nobody knows what it takes`);
    return 1;
  }
  await Deno.stdout.write(new TextEncoder().encode(await format(generateModule(signature, config.model, address))));
  return 0;
}

interface Signatures {
  /** By name, the newest version first. */
  readonly functions: readonly FunctionSignature[];
  /** `host:port`. */
  readonly address: string;
}

async function findSignatures({ port, functionsDir }: GenerateConfig): Promise<Signatures> {
  if (functionsDir !== undefined) {
    return { functions: await describeFolder(functionsDir), address: formatAddress({ hostname: "127.0.0.1", port }) };
  }
  const answer = await askServer(port).catch((error: Error) => {
    throw new ConfigError(error.message);
  });
  if (!answer) throw new ConfigError(`No server of yours runs on port ${port}; --functions reads a folder instead`);
  if (!answer.status) throw new ConfigError(`The server on port ${port} is just being restarted; ask again`);
  const { functions, address } = answer.status;
  return { functions, address: address.replace(/^(0\.0\.0\.0|\[::\])(?=:)/, "127.0.0.1") };
}

// Without running them: described as a server does it.
async function describeFolder(dir: string): Promise<readonly FunctionSignature[]> {
  const found = await scanFolder(folderUrl(dir));
  const described = await describeFunctions(found, { log: createLogger(() => {}), onStuck: () => {}, reloads: 0 });
  const signatures = found.map((file): FunctionSignature => {
    const result = described.get(file)!;
    if (result.status === "fulfilled") return result.value;
    return { name: file.name, version: file.version ?? "1", kinds: [] };
  });
  return signatures.sort((a, b) => b.version.localeCompare(a.version, undefined, { numeric: true }));
}

function choose(functions: readonly FunctionSignature[], model: string): FunctionSignature {
  const [name, version] = splitVersion(model);
  const found = functions.find((each) => each.name === name && (version === undefined || each.version === version));
  if (found) return found;
  throw new ConfigError(unknownModel(functions, model).message);
}

// With the settings of the folder that it is run in, so that the project's own check accepts it.
async function format(source: string): Promise<string> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--quiet", "--ext=ts", "-"],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  });
  await using child = command.spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(source));
  await writer.close();
  const { success, stdout, stderr } = await child.output();
  if (!success) throw new Error(`Cannot format the module: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout);
}
