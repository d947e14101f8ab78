// promtool, where Debian's package `prometheus` is installed.

/** What promtool says of a text that it reads; undefined where there is no promtool, which is said on the console. */
export async function promtool(args: readonly string[], text: string): Promise<string | undefined> {
  try {
    const child = new Deno.Command("promtool", { args: [...args], stdin: "piped", stdout: "piped", stderr: "piped" })
      .spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(text));
    await writer.close();
    const { code, stdout, stderr } = await child.output();
    const decoder = new TextDecoder();
    return `${decoder.decode(stdout)}${decoder.decode(stderr)}${code === 0 ? "" : `exit status ${code}`}`.trim();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    console.log("promtool (Debian package prometheus) is not installed: not asked");
    return undefined;
  }
}
