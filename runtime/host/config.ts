// Flags over environment over defaults: the one place that reads them.
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { DEFAULT_GRACE_MS, DEFAULT_LIMITS, type Limits } from "../assembly.ts";
import { LOG_LEVELS, type LogLevel } from "../core/log.ts";
import { ConfigError } from "./error.ts";
import type { LogFormat } from "./log_format.ts";

/** What the command line and the environment ask for. */
export interface Config extends Limits {
  readonly functionsDir: string;
  readonly hostname: string;
  readonly port: number;
  readonly graceMs: number;
  readonly logFormat: LogFormat;
  readonly logLevel: LogLevel;
}

/** Reads the arguments; returns a text to print instead, for `--help` and `--version`. Throws `ConfigError`. */
export function parseConfig(args: readonly string[], version: string): Config | { readonly print: string } {
  let print = "";
  const command = new Command("deno run -A mod.ts")
    .description("Serves every function of a folder over gRPC.")
    .argument(
      "[functions]",
      "folder of functions (TENSORLET_FUNCTIONS)",
      Deno.env.get("TENSORLET_FUNCTIONS") ?? "functions",
    )
    .addOption(option("--host <name>", "address to listen on", "127.0.0.1"))
    .addOption(option("--port <number>", "port to listen on, 0 = any", 50051).argParser(wholeNumber(0, 65_535)))
    .addOption(
      option("--grace-ms <ms>", "how long a shutdown waits for calls in progress", DEFAULT_GRACE_MS).argParser(
        wholeNumber(0),
      ),
    )
    .addOption(option("--log-format <format>", "how log lines look", "text").choices(["text", "json"]))
    .addOption(option("--log-level <level>", "least urgent lines to log", "info").choices(LOG_LEVELS))
    .addOption(limit("--max-message-bytes <bytes>", "largest message either way", "maxMessageBytes"))
    .addOption(limit("--max-in-flight <calls>", "calls that run at once", "maxInFlight"))
    .addOption(limit("--max-queue <calls>", "calls that wait beyond that", "maxQueue", 0))
    .addOption(limit("--max-sessions <sessions>", "chat sessions that are kept", "maxSessions"))
    .addOption(limit("--unary-timeout-ms <ms>", "deadline of unary calls that bring none", "unaryTimeoutMs"))
    .version(`tensorlet ${version}`, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeOut: (text) => print += text, writeErr: () => {} });
  try {
    command.parse(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return { print };
    const message = error.message.replace(/^error: /, "").replaceAll(/\s*\n\s*/g, " ").replace(/\.$/, "");
    throw new ConfigError(`${message}; --help lists the options`);
  }
  const { host, ...options } = command.opts<Omit<Config, "functionsDir" | "hostname"> & { readonly host: string }>();
  return { ...options, hostname: host, functionsDir: command.processedArgs[0] };
}

function option(flags: string, description: string, value: string | number): Option {
  const name = /^--([\w-]+)/.exec(flags)![1]!;
  return new Option(flags, description).default(value).env(`TENSORLET_${name.replaceAll("-", "_").toUpperCase()}`);
}

function limit(flags: string, description: string, key: keyof Limits, min = 1): Option {
  return option(flags, description, DEFAULT_LIMITS[key]).argParser(wholeNumber(min));
}

function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= min && number <= max) return number;
    throw new InvalidArgumentError(
      `Wanted a whole number from ${min}${max === Number.MAX_SAFE_INTEGER ? "" : ` to ${max}`}.`,
    );
  };
}
