// Flags over environment over defaults: the one place that reads them.
import { Argument, Command, InvalidArgumentError, Option } from "commander";
import { DEFAULT_GRACE_MS, DEFAULT_LIMITS, type Limits } from "../assembly.ts";
import { LOG_LEVELS, type LogLevel } from "../core/log.ts";
import { parseStoreChoice, type StoreChoice } from "../stores/open.ts";
import { ConfigError } from "./error.ts";
import { type Isolation, ISOLATION_LEVELS } from "./manifest.ts";
import type { LogFormat } from "./log_format.ts";
import { option, parse, setUp, wholeNumber } from "./options.ts";
import type { ProcessCount } from "./processes.ts";

const DEFAULT_DRAIN_MS = 10_000;
const DEFAULT_HTTP_PORT = 8080;

const OTHER_COMMANDS = `
Other commands:
  list [functions]        shows the functions of a running server
  call <model> [inputs]   calls one; call --help says how
  init <dir>              makes a new project
  generate <model>        prints a typed client of a function`;

/** What the command line and the environment ask for. */
export interface Config extends Limits {
  readonly functionsDir: string;
  readonly hostname: string;
  readonly port: number;
  /** For HTTP; undefined = none. */
  readonly httpPort: number | undefined;
  /** It is not the default, so it has to be had. */
  readonly hasChosenHttpPort: boolean;
  /** Whose pages may call from a browser. */
  readonly corsOrigins: readonly string[];
  /** How many processes serve. */
  readonly processes: ProcessCount;
  readonly graceMs: number;
  /** What the calls of a process that is replaced get. */
  readonly drainMs: number;
  /** Where functions run for which `functions.json` names no level. */
  readonly isolation: Isolation;
  /** Whether changed files are picked up. */
  readonly watch: boolean;
  /** Whether another process restarts this one. */
  readonly supervisor: boolean;
  /** Where sessions are kept. */
  readonly sessions: StoreChoice;
  /** Whether somebody chose that. */
  readonly hasChosenSessions: boolean;
  /** Whether each request has a line in the log. */
  readonly accessLog: boolean;
  readonly logFormat: LogFormat;
  readonly logLevel: LogLevel;
}

/** Reads the arguments; returns a text to print instead, for `--help` and `--version`. Throws `ConfigError`. */
export function parseConfig(args: readonly string[], version: string): Config | { readonly print: string } {
  let print = "";
  const command = new Command("deno run -A mod.ts")
    .description("Serves every function of a folder over gRPC.")
    .addArgument(functionsArgument())
    .addOption(option("--host <name>", "address to listen on", "127.0.0.1"))
    .addOption(portOption("port to listen on, 0 = any"))
    .addOption(
      option("--http-port <number>", "port to listen on for HTTP, 0 = any, off = none", DEFAULT_HTTP_PORT)
        .argParser(parseHttpPort),
    )
    .addOption(
      option("--cors-origins <origins>", "whose pages may call from a browser, with commas between, * = any", "")
        .argParser(origins),
    )
    .addOption(
      option("--processes <number>", "processes that serve, auto = one for each processor", 1).argParser(processCount),
    )
    .addOption(
      option("--grace-ms <ms>", "how long a shutdown waits for calls in progress", DEFAULT_GRACE_MS).argParser(
        wholeNumber(0),
      ),
    )
    .addOption(
      option("--drain-ms <ms>", "how long a process that is replaced waits for its calls", DEFAULT_DRAIN_MS).argParser(
        wholeNumber(0),
      ),
    )
    .addOption(
      option("--isolation <level>", "where functions run for which functions.json names no level", "worker").choices(
        ISOLATION_LEVELS,
      ),
    )
    .addOption(new Option("--watch", "pick up changed files (TENSORLET_WATCH)"))
    .addOption(new Option("--no-supervisor", "serve in this process, which ends with a crash (TENSORLET_SUPERVISOR)"))
    .addOption(
      option("--sessions <store>", "where chat sessions are kept: memory, kv:PATH, redis://HOST:PORT", "memory"),
    )
    .addOption(new Option("--access-log", "log a line for each request (TENSORLET_ACCESS_LOG)"))
    .addOption(option("--log-format <format>", "how log lines look", "text").choices(["text", "json"]))
    .addOption(option("--log-level <level>", "least urgent lines to log", "info").choices(LOG_LEVELS))
    .addOption(limit("--max-message-bytes <bytes>", "largest message either way", "maxMessageBytes"))
    .addOption(limit("--max-in-flight <calls>", "calls that run at once, in each process", "maxInFlight"))
    .addOption(limit("--max-queue <calls>", "calls that wait beyond that, in each process", "maxQueue", 0))
    .addOption(limit("--max-sessions <sessions>", "chat sessions that are kept, by each process", "maxSessions"))
    .addOption(limit("--unary-timeout-ms <ms>", "deadline of unary calls that bring none", "unaryTimeoutMs"))
    .addOption(
      limit("--resume-window-ms <ms>", "how long a stream with an id runs without a reader", "resumeWindowMs", 0),
    )
    .addOption(limit("--replay-keep-ms <ms>", "how long its tokens are kept after its end", "replayKeepMs", 0))
    .addOption(limit("--replay-max-tokens <tokens>", "tokens that are kept of a stream", "replayMaxTokens"))
    .addOption(limit("--replay-max-bytes <bytes>", "what they may take", "replayMaxBytes"))
    .addOption(limit("--replay-max-total-bytes <bytes>", "what those of all streams may take", "replayMaxTotalBytes"))
    .version(`tensorlet ${version}`, "-V, --version", "print the version")
    .addHelpText("after", OTHER_COMMANDS);
  setUp(command, (text) => print += text);
  if (!parse(command, args)) return { print };
  type Derived = "functionsDir" | "hostname" | "httpPort" | "hasChosenHttpPort" | "sessions" | "hasChosenSessions";
  type Options = Omit<Config, Derived> & {
    readonly host: string;
    readonly httpPort: number | "off";
    readonly sessions: string;
  };
  const { host, httpPort, ...options } = command.opts<Options>();
  const hasChosenHttpPort = command.getOptionValueSource("httpPort") !== "default";
  return {
    ...options,
    httpPort: httpPort === "off" ? undefined : hasChosenHttpPort || options.port !== 0 ? httpPort : 0,
    hasChosenHttpPort,
    corsOrigins: options.corsOrigins || [],
    sessions: storeOf(options.sessions, command.getOptionValueSource("sessions")),
    hasChosenSessions: command.getOptionValueSource("sessions") !== "default",
    watch: options.watch ?? isSet("TENSORLET_WATCH", false),
    accessLog: options.accessLog ?? isSet("TENSORLET_ACCESS_LOG", false),
    supervisor: options.supervisor && isSet("TENSORLET_SUPERVISOR", true),
    hostname: host,
    functionsDir: command.processedArgs[0],
  };
}

/** What `list` is to show. */
export interface ListConfig {
  readonly functionsDir: string;
  readonly port: number;
  readonly json: boolean;
}

/** Reads the arguments behind `list`, as {@linkcode parseConfig} does the others. */
export function parseListConfig(args: readonly string[]): ListConfig | { readonly print: string } {
  let print = "";
  const command = new Command("deno run -A mod.ts list")
    .description("Shows the functions of a running server, or those of a folder.")
    .addArgument(functionsArgument())
    .addOption(portOption("port of the server"))
    .addOption(new Option("--json", "print JSON").default(false));
  setUp(command, (text) => print += text);
  if (!parse(command, args)) return { print };
  return { ...command.opts<Omit<ListConfig, "functionsDir">>(), functionsDir: command.processedArgs[0] };
}

/** What `init` is to make. */
export interface InitConfig {
  readonly dir: string;
}

const INIT_HELP = `
DIR gets a deno.json with tasks, a function, its test and a client. It has to be new or empty.`;

/** Reads the arguments behind `init`, as {@linkcode parseConfig} does the others. */
export function parseInitConfig(args: readonly string[]): InitConfig | { readonly print: string } {
  let print = "";
  const command = new Command("deno run -A mod.ts init")
    .description("Makes a new project.")
    .addArgument(new Argument("<dir>", "a new or empty folder"))
    .addHelpText("after", INIT_HELP);
  setUp(command, (text) => print += text);
  if (!parse(command, args)) return { print };
  return { dir: command.processedArgs[0] };
}

/** What `generate` is to print a client of. */
export interface GenerateConfig {
  /** `name` or `name@version`. */
  readonly model: string;
  /** Port of the server that is asked. */
  readonly port: number;
  /** The folder that is read instead. */
  readonly functionsDir: string | undefined;
}

const GENERATE_HELP = `
The module is TypeScript on top of tensorlet/client, formatted as \`deno fmt\` does it here:
  generate digits > digits_client.ts`;

/** Reads the arguments behind `generate`, as {@linkcode parseConfig} does the others. */
export function parseGenerateConfig(args: readonly string[]): GenerateConfig | { readonly print: string } {
  let print = "";
  const command = new Command("deno run -A mod.ts generate")
    .description("Prints a typed client of a function of a running server, or of a folder.")
    .addArgument(new Argument("<model>", "name or name@version"))
    .addOption(portOption("port of the server"))
    .addOption(new Option("--functions <dir>", "read this folder instead"))
    .addHelpText("after", GENERATE_HELP);
  setUp(command, (text) => print += text);
  if (!parse(command, args)) return { print };
  const { port, functions } = command.opts<{ readonly port: number; readonly functions?: string }>();
  return { model: command.processedArgs[0], port, functionsDir: functions };
}

function functionsArgument(): Argument {
  return new Argument("[functions]", "folder of functions (TENSORLET_FUNCTIONS)")
    .default(Deno.env.get("TENSORLET_FUNCTIONS") ?? "functions");
}

function portOption(description: string): Option {
  return option("--port <number>", description, 50051).argParser(wholeNumber(0, 65_535));
}

function parseHttpPort(text: string): number | "off" {
  return text === "off" ? text : wholeNumber(0, 65_535)(text);
}

function origins(text: string): readonly string[] {
  const list = text.split(",").map((origin) => origin.trim()).filter((origin) => origin !== "");
  for (const origin of list) {
    if (origin === "*" || URL.canParse(origin) && new URL(origin).origin === origin) continue;
    throw new InvalidArgumentError("Wanted origins such as https://example.com, with commas between, or *.");
  }
  return list;
}

function processCount(text: string): ProcessCount {
  if (text === "auto") return text;
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1 && Number.isSafeInteger(number)) return number;
  throw new InvalidArgumentError("Wanted a whole number from 1, or auto.");
}

// commander would repeat the value, which may hold a password.
function storeOf(text: string, source: string | undefined): StoreChoice {
  try {
    return parseStoreChoice(text);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const name = source === "env" ? "TENSORLET_SESSIONS" : "--sessions";
    throw new ConfigError(`Cannot read ${name}: ${error.message}; --help lists the options`);
  }
}

// commander takes any value of a switch's variable, even "false", for its being set.
function isSet(name: string, byDefault: boolean): boolean {
  const text = Deno.env.get(name);
  if (text === undefined) return byDefault;
  if (text === "true" || text === "false") return text === "true";
  throw new ConfigError(`Cannot read ${name}: it is ${JSON.stringify(text)}, wanted true or false`);
}

function limit(flags: string, description: string, key: keyof Limits, min = 1): Option {
  return option(flags, description, DEFAULT_LIMITS[key]).argParser(wholeNumber(min));
}
