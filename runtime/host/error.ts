/** A mistake of whoever starts the server: one line, exit 2. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}
