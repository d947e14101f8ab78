import { assert, assertEquals, assertThrows } from "tensorlet/assert";
import { type Config, parseConfig, parseListConfig } from "../../runtime/host/config.ts";
import { ConfigError } from "../../runtime/host/error.ts";

function parse(...args: string[]): Config {
  const config = parseConfig(args, "1.2.3");
  assert(!("print" in config));
  return config;
}

function withEnv(variables: Readonly<Record<string, string>>, action: () => void): void {
  for (const [name, value] of Object.entries(variables)) Deno.env.set(name, value);
  try {
    action();
  } finally {
    for (const name of Object.keys(variables)) Deno.env.delete(name);
  }
}

Deno.test("parseConfig() has defaults for everything", () => {
  const { functionsDir, hostname, port, graceMs, logFormat, logLevel, maxMessageBytes } = parse();
  assertEquals(
    [functionsDir, hostname, port, graceMs, logFormat, logLevel, maxMessageBytes],
    ["functions", "127.0.0.1", 50051, 10_000, "text", "info", 64 * 1024 * 1024],
  );
});

Deno.test("parseConfig() prefers flags to the environment, and the environment to defaults", () => {
  withEnv({ TENSORLET_PORT: "7000", TENSORLET_GRACE_MS: "5", TENSORLET_FUNCTIONS: "elsewhere" }, () => {
    assertEquals([parse().port, parse().graceMs, parse().functionsDir], [7000, 5, "elsewhere"]);
    assertEquals([parse("--port", "0").port, parse("mine").functionsDir], [0, "mine"]);
  });
});

Deno.test("parseConfig() takes switches, and their variables for what they say", () => {
  assertEquals([parse().watch, parse().supervisor, parse().drainMs], [false, true, 10_000]);
  assertEquals([parse("--watch").watch, parse("--no-supervisor").supervisor], [true, false]);
  withEnv({ TENSORLET_WATCH: "true", TENSORLET_SUPERVISOR: "false" }, () => {
    assertEquals([parse().watch, parse().supervisor], [true, false]);
  });
  withEnv({ TENSORLET_WATCH: "false", TENSORLET_SUPERVISOR: "true" }, () => {
    assertEquals([parse().watch, parse("--watch").watch, parse().supervisor], [false, true, true]);
  });
  assertEquals([parse().accessLog, parse("--access-log").accessLog], [false, true]);
  withEnv({ TENSORLET_ACCESS_LOG: "true" }, () => assertEquals(parse().accessLog, true));
  withEnv({ TENSORLET_WATCH: "yes" }, () => assertThrows(() => parse(), ConfigError, "TENSORLET_WATCH"));
});

Deno.test("parseConfig() takes a port for HTTP, and whose pages may call", () => {
  const http = (...args: readonly string[]) => {
    const { httpPort, hasChosenHttpPort } = parse(...args);
    return [httpPort, hasChosenHttpPort];
  };
  assertEquals([http(), http("--port", "1"), http("--port", "0")], [[8080, false], [8080, false], [0, false]]);
  assertEquals([http("--http-port", "0"), http("--http-port", "off")], [[0, true], [undefined, true]]);
  assertEquals(http("--port", "0", "--http-port", "8080"), [8080, true]);
  withEnv({ TENSORLET_HTTP_PORT: "8081" }, () => assertEquals(http("--port", "0"), [8081, true]));
  assertEquals(parse().corsOrigins, []);
  assertEquals(parse("--cors-origins", "https://a.example, http://b.example:1").corsOrigins, [
    "https://a.example",
    "http://b.example:1",
  ]);
  assertEquals(parse("--cors-origins", "*").corsOrigins, ["*"]);
});

Deno.test("parseConfig() takes a number of processes, or auto", () => {
  assertEquals([parse().processes, parse("--processes", "3").processes], [1, 3]);
  withEnv({ TENSORLET_PROCESSES: "auto" }, () => {
    assertEquals([parse().processes, parse("--processes", "2").processes], ["auto", 2]);
  });
});

Deno.test("parseConfig() knows whether somebody chose where sessions are kept", () => {
  assertEquals([parse(), parse("--sessions", "memory")].map((each) => each.hasChosenSessions), [false, true]);
  withEnv({ TENSORLET_SESSIONS: "memory" }, () => assertEquals(parse().hasChosenSessions, true));
});

Deno.test("parseConfig() reads where sessions are kept", () => {
  assertEquals(parse().sessions, { kind: "memory" });
  assertEquals(parse("--sessions", "kv:a.db").sessions, { kind: "kv", path: "a.db" });
  withEnv({ TENSORLET_SESSIONS: "redis://:secret@h:1/2" }, () => {
    assertEquals(parse().sessions, { kind: "redis", url: "redis://:secret@h:1/2" });
    assertEquals(parse("--sessions", "memory").sessions, { kind: "memory" });
    const help = parseConfig(["--help"], "1.2.3");
    assert("print" in help && !help.print.includes("secret"));
  });
  for (const text of ["redis://:secret@h:x", "disk"]) {
    const { message } = assertThrows(() => parse("--sessions", text), ConfigError, "Cannot read --sessions");
    assertEquals([message.includes("secret"), message.includes("\n")], [false, false]);
    withEnv({ TENSORLET_SESSIONS: text }, () => {
      const { message } = assertThrows(() => parse(), ConfigError, "Cannot read TENSORLET_SESSIONS");
      assertEquals(message.includes("secret"), false);
    });
  }
});

Deno.test("parseListConfig() reads what to list", () => {
  assertEquals(parseListConfig([]), { functionsDir: "functions", port: 50051, json: false });
  assertEquals(parseListConfig(["mine", "--port", "1", "--json"]), { functionsDir: "mine", port: 1, json: true });
  withEnv({ TENSORLET_PORT: "7000" }, () => {
    assertEquals(parseListConfig([]), { functionsDir: "functions", port: 7000, json: false });
  });
  assertThrows(() => parseListConfig(["--host", "x"]), ConfigError, "--help lists the options");
  assert("print" in parseListConfig(["--help"]));
});

for (
  const [args, text] of [
    [["--prt", "1"], "Did you mean --port?"],
    [["--port", "abc"], "whole number from 0 to 65535"],
    [["--port", "65536"], "whole number from 0 to 65535"],
    [["--port", "-1"], "whole number"],
    [["--port"], "argument missing"],
    [["--http-port", "x"], "whole number from 0 to 65535"],
    [["--cors-origins", "example.com"], "origins such as https://example.com"],
    [["--processes", "0"], "whole number from 1, or auto"],
    [["--processes", "two"], "whole number from 1, or auto"],
    [["--max-in-flight", "0"], "whole number from 1"],
    [["--log-format", "xml"], "text, json"],
    [["a", "b"], "too many arguments"],
  ] as const
) {
  Deno.test(`parseConfig() refuses ${args.join(" ")} in one line`, () => {
    const error = assertThrows(() => parse(...args), ConfigError, text);
    assertEquals(error.message.includes("\n"), false);
  });
}

Deno.test("parseConfig() refuses a wrong environment variable by its name", () => {
  withEnv({ TENSORLET_PORT: "abc" }, () => assertThrows(() => parse(), ConfigError, "TENSORLET_PORT"));
});

Deno.test("parseConfig() gives help and version as texts", () => {
  const help = parseConfig(["--help"], "1.2.3");
  assert("print" in help && help.print.includes("--grace-ms"));
  assertEquals(parseConfig(["--version"], "1.2.3"), { print: "tensorlet 1.2.3\n" });
});
