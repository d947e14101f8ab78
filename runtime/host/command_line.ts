// How this process was started, for a supervisor to start others in the same way.

const PERMISSIONS = ["run", "read", "write", "net", "env", "sys", "ffi", "import"] as const;
// What belongs to one process only: a second one would want the same port, or watch the same files.
const OWN_FLAGS = /^--(inspect|watch|hmr)/;

/** The arguments with which Deno starts the server again, or why a supervisor cannot or shall not do so. */
export function supervisorCommand(args: readonly string[]): readonly string[] | string {
  if (args.includes("--no-supervisor") || Deno.env.get("TENSORLET_SUPERVISOR") === "false") return "it was told so";
  if (Deno.build.standalone) return "this is a compiled program";
  // With less than that the started process would have more permissions than its supervisor.
  const missing = PERMISSIONS.find((name) => Deno.permissions.querySync({ name }).state !== "granted");
  if (missing) return `it needs all permissions (-A), and --allow-${missing} is missing`;
  const main = decodeURIComponent(new URL(Deno.mainModule).pathname);
  if (Deno.build.os !== "linux") return ["run", "-A", main, ...args];
  const command = Deno.readTextFileSync("/proc/self/cmdline").split("\0").slice(1, -1);
  const flags = command.slice(0, command.length - Deno.args.length);
  return flags.find((flag) => OWN_FLAGS.test(flag)) !== undefined
    ? "Deno was told to inspect or watch this process"
    : [...flags, ...args];
}
