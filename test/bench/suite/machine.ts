// What a run was made on: without it, nobody can judge its figures.
import { run } from "./tools.ts";
import type { Workbench } from "./workbench.ts";

/** Processor, versions, and how busy the machine was at the start. Tools that are missing are left out. */
export async function describeMachine(bench: Workbench): Promise<Record<string, string | number>> {
  const cpu = /^model name\s*: (.*)$/m.exec(await Deno.readTextFile("/proc/cpuinfo"))?.[1];
  const versions = "import grpc, numpy, platform as p; print(p.python_version(), grpc.__version__, numpy.__version__)";
  const [node, cpp, h2load, python] = await Promise.all([
    attempt(() => run("node", ["--version"])),
    attempt(() => run("pkg-config", ["--modversion", "grpc++"])),
    attempt(() => run("h2load", ["--version"])),
    attempt(async () => run((await bench.python()).python, ["-c", versions])),
  ]);
  const [pythonVersion, grpcio, numpy] = python?.split(" ") ?? [];
  const known = Object.entries({ node, grpcpp: cpp, h2load, python: pythonVersion, grpcio, numpy });
  return {
    cores: navigator.hardwareConcurrency,
    cpu: cpu ?? "unknown",
    load: Deno.loadavg()[0]!,
    deno: Deno.version.deno,
    ...Object.fromEntries(known.filter((entry): entry is [string, string] => entry[1] !== undefined)),
  };
}

async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch {
    return undefined;
  }
}
