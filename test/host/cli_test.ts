// The command as users start it: real processes, real signals.
import { Buffer } from "node:buffer";
import http2 from "node:http2";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "tensorlet/assert";
import { patchHttp2Close } from "../../runtime/transports/grpc/http2_patch.ts";
import { deno } from "../harness/command.ts";
import { encodeRequest } from "../harness/http2_client.ts";
import { FUNCTIONS, MAIN, type Result, ROOT } from "../harness/server_process.ts";

function command(args: readonly string[], env: Readonly<Record<string, string>> = {}): Deno.Command {
  return new Deno.Command(Deno.execPath(), {
    args: [...MAIN, ...args],
    cwd: ROOT,
    env: { ...env, NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

function run(...args: string[]): Promise<Result> {
  return deno(ROOT, ...MAIN, ...args);
}

/** Reads until `text` has come; the rest can be read on. */
async function readUntil(stream: ReadableStreamDefaultReader<string>, text: string): Promise<string> {
  let read = "";
  while (!read.includes(text)) {
    const { done, value } = await stream.read();
    if (done) throw new Error(`ended before ${JSON.stringify(text)}: ${read}`);
    read += value;
  }
  return read;
}

function readerOf(stream: ReadableStream<Uint8Array<ArrayBuffer>>): ReadableStreamDefaultReader<string> {
  return stream.pipeThrough(new TextDecoderStream()).getReader();
}

async function drain(reader: ReadableStreamDefaultReader<string>): Promise<string> {
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += value;
  }
}

Deno.test("cli: says what it serves and how to call it, and stops with 0 on SIGTERM", async () => {
  const child = command([FUNCTIONS, "--port", "0"]).spawn();
  const stdout = readerOf(child.stdout);
  const stderr = readerOf(child.stderr);
  const listing = await readUntil(stdout, "ChatStream\n");
  assertMatch(listing, /functions on grpc:\/\/127\.0\.0\.1:\d+ and http:\/\/127\.0\.0\.1:\d+\n/);
  assertMatch(listing, /chunks@1 +predict stream batch +float32\[2\] -> float32\[1\]/);
  assertStringIncludes(listing, "grpcurl -plaintext");
  await readUntil(stderr, "ready");
  child.kill("SIGTERM");
  const { code } = await child.status;
  assertStringIncludes(await drain(stderr), "stopped");
  await drain(stdout);
  assertEquals(code, 0);
});

Deno.test("cli: a second signal ends it at once", async () => {
  const child = command([FUNCTIONS, "--port", "0", "--grace-ms", "600000"]).spawn();
  const stdout = readerOf(child.stdout);
  const stderr = readerOf(child.stderr);
  const [, port] = /grpc:\/\/127\.0\.0\.1:(\d+)/.exec(await readUntil(stdout, "ChatStream\n"))!;
  await readUntil(stderr, "ready");
  // A call that holds the shutdown up: a stream of two tokens, ten minutes apart.
  patchHttp2Close();
  const session = http2.connect(`http://127.0.0.1:${port}`);
  session.on("error", () => {});
  const closed = new Promise<void>((resolve) => session.on("close", resolve));
  const stream = session.request({
    ":method": "POST",
    ":path": "/inference.v1.ModelInference/StreamPredict",
    "content-type": "application/grpc",
    te: "trailers",
    "param-delay_ms": "600000",
  });
  stream.on("error", () => {});
  const firstToken = new Promise((resolve) => stream.once("data", resolve));
  stream.end(Buffer.from(encodeRequest("counter")));
  await firstToken;
  child.kill("SIGINT");
  await readUntil(stderr, "once more to stop now");
  child.kill("SIGINT");
  const { code } = await child.status;
  session.destroy();
  await Promise.all([drain(stdout), drain(stderr), closed]);
  assertEquals(code, 130);
});

Deno.test("cli: logs and listing as JSON lines", async () => {
  const child = command([FUNCTIONS, "--port", "0"], { TENSORLET_LOG_FORMAT: "json" }).spawn();
  const stdout = readerOf(child.stdout);
  const stderr = readerOf(child.stderr);
  const lines = (await readUntil(stderr, '"ready"')).trimEnd().split("\n").map((line) => JSON.parse(line));
  const serving = lines.find(({ message }) => message === "serving");
  assertMatch(serving.address, /^grpc:\/\/127\.0\.0\.1:\d+$/);
  assert(
    serving.functions.some(({ name, kinds }: { name: string; kinds: string[] }) =>
      name === "parrot" && kinds.includes("chat")
    ),
  );
  child.kill("SIGTERM");
  await Promise.all([child.status, drain(stdout), drain(stderr)]);
});

for (
  const [args, text] of [
    [["--prt", "1"], "Did you mean --port?"],
    [["no/such/folder", "--port", "0"], 'no/such/folder": there is no such folder'],
  ] as const
) {
  Deno.test(`cli: ${args.join(" ")} is one line and status 2`, async () => {
    const { code, stdout, stderr } = await run(...args);
    assertEquals([code, stdout], [2, ""]);
    assertStringIncludes(stderr, text);
    assertEquals(stderr.trimEnd().split("\n").length, 1);
  });
}

Deno.test("cli: a taken port is one line and status 2", async () => {
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = taken.addr as Deno.NetAddr;
  const { code, stderr } = await run(FUNCTIONS, "--port", `${port}`);
  assertEquals([code, stderr], [2, `error: Cannot listen on 127.0.0.1:${port}: the port is taken\n`]);
});

Deno.test("cli: HTTP is served too, and a taken port is refused where it was asked for", async () => {
  const child = command([FUNCTIONS, "--port", "0"]).spawn();
  const stdout = readerOf(child.stdout);
  const listing = await readUntil(stdout, "ChatStream\n");
  const [, url] = /on grpc:\/\/127\.0\.0\.1:\d+ and (http:\/\/127\.0\.0\.1:\d+)\n/.exec(listing) ?? [];
  const response = await fetch(`${url}/no/such/path`);
  assertEquals([response.status, (await response.json()).error], [
    404,
    'Cannot find "/no/such/path": there is no such path',
  ]);
  const { code, stderr } = await run(FUNCTIONS, "--port", "0", "--http-port", new URL(url!).port);
  assertEquals([code, stderr], [2, `error: Cannot listen on ${new URL(url!).host}: the port is taken\n`]);
  child.kill("SIGTERM");
  assertEquals((await child.status).code, 0);
  await drain(stdout);
  await child.stderr.cancel();
});

Deno.test("cli: a file that is no function is listed as failed, and the others are served", async () => {
  const dir = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${dir}/broken.ts`, "export default ((;");
    await Deno.writeTextFile(
      `${dir}/fine.ts`,
      'import { defineModel } from "tensorlet"; export default defineModel({ predict: ([x]) => x! });',
    );
    const child = command([dir, "--port", "0"]).spawn();
    const stdout = readerOf(child.stdout);
    const stderr = readerOf(child.stderr);
    const listing = await readUntil(stdout, "Predict\n");
    assertMatch(listing, /broken@1 +\(failed\)/);
    assertMatch(listing, /fine@1 +predict/);
    const log = await readUntil(stderr, "not all functions can be called: broken failed");
    assertStringIncludes(log, "broken.ts");
    child.kill("SIGTERM");
    await Promise.all([child.status, drain(stdout), drain(stderr)]);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
