// Log records as lines on stderr: for people or for machines.
import { createLogger, type Logger, type LogLevel, type LogRecord } from "../core/log.ts";

/** How log lines look. */
export type LogFormat = "text" | "json";

/** A logger that writes lines of at least `level` to stderr. */
export function createStderrLogger(format: LogFormat, level: LogLevel): Logger {
  const encoder = new TextEncoder();
  const line = format === "json" ? jsonLine : textLine;
  return createLogger((record) => {
    try {
      Deno.stderr.writeSync(encoder.encode(`${line(record)}\n`));
    } catch {
      // Whoever read the log has gone: that is no reason to stop serving.
    }
  }, level);
}

function jsonLine({ level, message, fields }: LogRecord): string {
  const replacer = (_key: string, value: unknown) => {
    if (value instanceof Error) {
      return { name: value.name, message: value.message, stack: value.stack, cause: value.cause };
    }
    return typeof value === "bigint" ? `${value}` : value;
  };
  const record = { time: new Date().toISOString(), level, message, ...fields };
  try {
    return JSON.stringify(record, replacer);
  } catch {
    return JSON.stringify({
      ...record,
      ...Object.fromEntries(Object.keys(fields).map((key) => [key, Deno.inspect(fields[key])])),
    });
  }
}

function textLine({ level, message, fields }: LogRecord): string {
  const { cause, ...rest } = fields;
  const pairs = Object.entries(rest).filter(([, value]) => value !== undefined).map(([key, value]) =>
    ` ${key}=${show(value)}`
  );
  const trace = cause === undefined ? "" : `\n${cause instanceof Error ? cause.stack ?? cause : Deno.inspect(cause)}`;
  return `${new Date().toISOString()} ${level.toUpperCase().padEnd(5)} ${message}${pairs.join("")}${trace}`;
}

function show(value: unknown): string {
  return typeof value === "string" && /^[\w.:/@-]+$/.test(value)
    ? value
    : Deno.inspect(value, { breakLength: Infinity });
}
