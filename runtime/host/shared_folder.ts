// The folder of what the processes of a server share: only this user may look into it.

/** Makes it; undefined where that cannot be done, which it says. */
export function makeFolder(): string | undefined {
  try {
    return Deno.makeTempDirSync({ prefix: "tensorlet-shared-" });
  } catch (error) {
    console.error(`error: Cannot make a folder for what the processes share: ${(error as Error).message}`);
    return undefined;
  }
}

/** Removes it with all that is in it. */
export function removeFolder(folder: string): void {
  try {
    Deno.removeSync(folder, { recursive: true });
  } catch {
    // Somebody else has done so.
  }
}
