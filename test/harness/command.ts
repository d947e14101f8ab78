// Commands that run to their end in a folder of their own.
import { assertEquals } from "tensorlet/assert";
import type { Result } from "./server_process.ts";

/** Runs this Deno. */
export async function deno(cwd: string, ...args: readonly string[]): Promise<Result> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd,
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

/** Does so, with status 0; resolves to what it prints. */
export async function succeeds(cwd: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await deno(cwd, ...args);
  assertEquals(code, 0, `deno ${args.join(" ")}\n${stdout}${stderr}`);
  return stdout;
}
