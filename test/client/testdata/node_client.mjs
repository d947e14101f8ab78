// What test/client/node_test.ts runs on Node: every mode by the bundled client, its findings as JSON on stdout.
const [bundle, address, proxied] = process.argv.slice(2);
const { createClient, tensor, ClientError } = await import(bundle);

const found = { runtime: typeof Deno === "undefined" ? "node" : "deno" };

const affine = createClient(address, { model: "affine" });
const { output } = await affine.predict(tensor("int64", [2n ** 60n]));
found.predict = `${output.dtype} ${output.data[0]}`;
const error = await affine.predict(tensor("string", ["x"])).catch((error) => error);
found.error = [error instanceof ClientError, error.code];
affine.close();

const words = createClient(proxied, { model: "words", retry: { initialDelayMs: 1 } });
const stream = words.stream([], { maxTokens: 50 });
let text = "";
for await (const token of stream) text += token;
found.stream = [text, stream.stats.tokens, stream.stats.resumptions > 0];
words.close();

const sum = createClient(address, { model: "sum" });
const { results, stats } = await sum.batch(Array.from({ length: 2000 }, (_, i) => Float32Array.of(i, 1)));
found.batch = [results.length, results.every((result, i) => result.output[0] === i + 1), stats.inFlight];
sum.close();

const stuck = createClient(address, { model: "stuck" });
let made = 0;
async function* endless() {
  for (;;) {
    made++;
    yield new Float32Array(784);
    if (made % 64 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  }
}
const late = await stuck.batch(endless(), { timeoutMs: 1000 }).catch((error) => error);
found.stuck = [late.code, made < 8000];
stuck.close();

const parrot = createClient(address, { model: "parrot" });
const chat = parrot.chat();
found.chat = [];
for (const message of ["hello", "again"]) {
  let answer = "";
  for await (const piece of chat.send(message)) answer += piece;
  found.chat.push(answer);
}
await chat[Symbol.asyncDispose]();
await parrot[Symbol.asyncDispose]();

console.log(JSON.stringify(found));
