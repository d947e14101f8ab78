// stdout, which may be a terminal, and may be closed by whoever reads it.
import { visible } from "./terminal.ts";

/** Nobody reads the answer any more: `| head -1`. */
export class OutputClosed extends Error {
  override readonly name = "OutputClosed";
}

/** Where answers go. */
export interface Output {
  readonly isTerminal: boolean;
  /** Writes a text as it is; to a terminal, without what it would obey. Rejects with {@linkcode OutputClosed}. */
  write(text: string): Promise<void>;
  /** Rejects with {@linkcode OutputClosed}. */
  writeBytes(bytes: Uint8Array): Promise<void>;
}

/** This process's stdout. */
export function standardOutput(): Output {
  const isTerminal = Deno.stdout.isTerminal();
  const encoder = new TextEncoder();
  const writeBytes = async (bytes: Uint8Array) => {
    try {
      for (let at = 0; at < bytes.length;) at += await Deno.stdout.write(bytes.subarray(at));
    } catch (error) {
      if (error instanceof Deno.errors.BrokenPipe) throw new OutputClosed("stdout is closed");
      throw error;
    }
  };
  return {
    isTerminal,
    writeBytes,
    write: (text) => writeBytes(encoder.encode(isTerminal ? visible(text) : text)),
  };
}

/** Writes a line for whoever sits at the terminal. */
export function note(text: string): void {
  writeError(`${visible(text)}\n`);
}

/** Writes a text to stderr as it is. */
export function writeError(text: string): void {
  const bytes = new TextEncoder().encode(text);
  try {
    for (let at = 0; at < bytes.length;) at += Deno.stderr.writeSync(bytes.subarray(at));
  } catch {
    // stderr is closed: nobody is there to be told.
  }
}
