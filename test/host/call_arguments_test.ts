import { assert, assertEquals, assertThrows } from "tensorlet/assert";
import { type CallConfig, parseCallConfig } from "../../runtime/call/arguments.ts";
import { ConfigError } from "../../runtime/host/error.ts";

function parse(...args: readonly string[]): CallConfig {
  const config = parseCallConfig(args);
  assert(!("print" in config));
  return config;
}

Deno.test("parseCallConfig() has the model first, and then what is sent", () => {
  assertEquals(parse("affine"), {
    model: "affine",
    inputs: [],
    mode: "auto",
    address: "127.0.0.1:50051",
    params: {},
    metadata: {},
    json: false,
  });
  assertEquals(parse("affine@2", "[1]", "-", "x=y.npy", "--json").inputs, ["[1]", "-", "x=y.npy"]);
  assertEquals(parse("affine", "--", "-1").inputs, ["-1"]);
});

Deno.test("parseCallConfig() collects parameters and headers, a value's = among them", () => {
  const config = parse("m", "-p", "a=1", "--param", "prompt=x = y", "-p", "a=2", "-H", "x-user=me", "-p", "empty=");
  assertEquals([config.params, config.metadata], [{ a: "2", prompt: "x = y", empty: "" }, { "x-user": "me" }]);
});

Deno.test("parseCallConfig() knows the mode by the flags", () => {
  assertEquals(parse("m", "--stream", "--max-tokens", "4").maxTokens, 4);
  assertEquals([parse("m", "--stream").mode, parse("m", "--chat", "hello").mode], ["stream", "chat"]);
  assertEquals([parse("m", "--session", "s").mode, parse("m", "--session", "s").session], ["chat", "s"]);
  assertEquals([parse("m", "--batch", "-").mode, parse("m", "--batch", "x.csv").batch], ["batch", "x.csv"]);
});

Deno.test("parseCallConfig() takes addresses as servers print them, and from the environment", () => {
  for (const address of ["localhost:1", "grpc://10.0.0.1:65535", "[::1]:50051"]) {
    assertEquals(parse("m", "--address", address).address, address.replace("grpc://", ""));
  }
  Deno.env.set("TENSORLET_ADDRESS", "elsewhere:7");
  try {
    assertEquals([parse("m").address, parse("m", "--address", "here:8").address], ["elsewhere:7", "here:8"]);
  } finally {
    Deno.env.delete("TENSORLET_ADDRESS");
  }
});

for (
  const [args, text] of [
    [[], "missing required argument 'model'"],
    [[""], "the model's name is empty"],
    [["m", "--jsn"], "Did you mean --json?"],
    [["m", "--address", "localhost"], "Wanted HOST:PORT, like 127.0.0.1:50051"],
    [["m", "--address", "localhost:0"], "Wanted HOST:PORT"],
    [["m", "--address", "localhost:65536"], "Wanted HOST:PORT"],
    [["m", "--param", "prompt"], "Wanted NAME=VALUE"],
    [["m", "-H", "a b=c"], "Wanted NAME=VALUE"],
    [["m", "--max-tokens", "0"], "whole number from 1 to 4294967295"],
    [["m", "--timeout-ms", "1s"], "whole number from 1"],
    [["m", "--dtype", "float"], "float32"],
    [["m", "--stream", "--chat"], "--stream and --chat cannot be one call"],
    [["m", "--session", "s", "--batch", "-"], "--chat and --batch cannot be one call"],
    [["m", "[1]", "--batch", "x"], 'a batch reads its rows from --batch, got also "[1]"'],
    [["m", "--chat", "one", "two"], "a chat begins with one text, got 2"],
    [["m", "--chat", "--out", "x.npy"], "--out does nothing in a chat call"],
    [["m", "--batch", "-", "--dtype", "int8"], "--dtype does nothing in a batch call"],
    [["m", "--chat", "--max-tokens", "3"], "--max-tokens does nothing in a chat call"],
  ] as const
) {
  Deno.test(`call ${args.join(" ")} is wrong in one line`, () => {
    const error = assertThrows(() => parseCallConfig(args), ConfigError, text) as unknown as ConfigError;
    assert(error.message.endsWith("; --help lists the options") && !error.message.includes("\n"));
  });
}

Deno.test("parseCallConfig() gives its help as a text", () => {
  const help = parseCallConfig(["--help"]);
  assert("print" in help && help.print.includes("call affine '[1, 2, 3]'"));
});
