// What the commands' options have in common.
import { type Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { ConfigError } from "./error.ts";

/** Lets a command write through `write`, and throw rather than exit. */
export function setUp(command: Command, write: (text: string) => void): void {
  command.helpOption("-h, --help", "print this help")
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeOut: write, writeErr: () => {} });
}

/** Whether there is something to do beyond what has been printed. Throws `ConfigError`. */
export function parse(command: Command, args: readonly string[]): boolean {
  try {
    command.parse(args, { from: "user" });
    return true;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return false;
    const message = error.message.replace(/^error: /, "").replaceAll(/\s*\n\s*/g, " ").replace(/\.$/, "");
    throw new ConfigError(`${message}; --help lists the options`);
  }
}

/** An option with a default, that `TENSORLET_...` sets too. */
export function option(flags: string, description: string, value: string | number): Option {
  const name = /^--([\w-]+)/.exec(flags)![1]!;
  return new Option(flags, description).default(value).env(`TENSORLET_${name.replaceAll("-", "_").toUpperCase()}`);
}

/** An option's value: a whole number, `min` and `max` included. */
export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= min && number <= max) return number;
    throw new InvalidArgumentError(
      `Wanted a whole number from ${min}${max === Number.MAX_SAFE_INTEGER ? "" : ` to ${max}`}.`,
    );
  };
}
