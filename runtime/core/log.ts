/** Fields of a log line beside its message. */
export interface LogFields {
  /** A field by name. */
  readonly [field: string]: unknown;
}

/** How urgent a log line is. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** One log line. */
export interface LogRecord {
  /** How urgent it is. */
  readonly level: LogLevel;
  /** What happened. */
  readonly message: string;
  /** Details. */
  readonly fields: LogFields;
}

/** Writes structured log lines. */
export interface Logger {
  /** For whoever looks for a fault. */
  debug(message: string, fields?: LogFields): void;
  /** What went as planned. */
  info(message: string, fields?: LogFields): void;
  /** What may need attention. */
  warn(message: string, fields?: LogFields): void;
  /** What failed. */
  error(message: string, fields?: LogFields): void;
}

/** The log levels, least urgent first. */
export const LOG_LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** A logger that hands records of at least `minimum` to `write`. */
export function createLogger(write: (record: LogRecord) => void, minimum: LogLevel = "debug"): Logger {
  const first = LOG_LEVELS.indexOf(minimum);
  return loggerOf((level) =>
    LOG_LEVELS.indexOf(level) < first ? nothing : (message, fields = {}) => write({ level, message, fields })
  );
}

/** `log` with `info` as `debug`. */
export function quieter(log: Logger): Logger {
  return { ...log, info: log.debug };
}

/** `log` with `fields` added to each record. */
export function withFields(log: Logger, fields: LogFields): Logger {
  return loggerOf((level) => {
    const write = log[level];
    return write === nothing ? nothing : (message, more) => write(message, { ...fields, ...more });
  });
}

/** Milliseconds since a `performance.now()`, as log lines have them. */
export function msSince(start: number): number {
  return Math.round((performance.now() - start) * 1000) / 1000;
}

type Write = Logger[LogLevel];

// One for all that is not logged, so that what derives from it need not make a record to find that out.
const nothing: Write = () => {};

function loggerOf(at: (level: LogLevel) => Write): Logger {
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
