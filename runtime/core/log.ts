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

/** A logger that hands every record to `write`; `fields` are added to each. */
export function createLogger(write: (record: LogRecord) => void, fields: LogFields = {}): Logger {
  const at = (level: LogLevel) => (message: string, more: LogFields = {}) =>
    write({ level, message, fields: { ...fields, ...more } });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** `log` with `fields` added to each record. */
export function withFields(log: Logger, fields: LogFields): Logger {
  return createLogger((record) => log[record.level](record.message, record.fields), fields);
}
