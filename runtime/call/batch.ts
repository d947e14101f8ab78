// Many rows in one call.
import type { BatchAnswer, BatchVector } from "../client.ts";
import { ConfigError } from "../host/error.ts";
import { formatTensor } from "./format.ts";
import { fileProblem } from "./inputs.ts";
import { quoteJson } from "./json.ts";
import { note, writeError } from "./output.ts";
import { ProgressLine } from "./progress.ts";
import { readRows } from "./rows.ts";
import { callOptions, type Run, stdin } from "./run.ts";

/** Answers are written together in so many characters. */
const WRITE_CHARACTERS = 1 << 16;

/** Sends the rows of `--batch` and writes a line for each answer; a terminal shows how far it is. */
export async function batch(run: Run): Promise<void> {
  const { client, config, output } = run;
  await using source = await openSource(run);
  const start = performance.now();
  const progress = Deno.stderr.isTerminal() ? new ProgressLine(writeError) : undefined;
  const options = {
    ...callOptions(run),
    ...progress && { onProgress: ({ sent }: { readonly sent: number }) => progress.update(sent, source.done()) },
  };
  const { results } = await client.batch(vectors(source), options).finally(() => progress?.clear());
  let text = "";
  for (const [i, answer] of results.entries()) {
    text += config.json ? `${document(answer, i)}\n` : `${values(answer)}\n`;
    if (text.length < WRITE_CHARACTERS && i < results.length - 1) continue;
    await output.write(text);
    text = "";
  }
  if (config.json) await output.write(`{"done":true,"rows":${results.length}}\n`);
  else if (progress) note(`${results.length} rows in ${((performance.now() - start) / 1000).toFixed(1)} s`);
}

async function* vectors({ chunks, where }: Source): AsyncGenerator<BatchVector, void, undefined> {
  for await (const { id, features } of readRows(chunks, where)) yield { features, ...id !== undefined && { id } };
}

function values({ output }: BatchAnswer): string {
  return formatTensor({ dtype: "float32", shape: [output.length], data: output });
}

function document(answer: BatchAnswer, index: number): string {
  const id = answer.id === undefined ? "" : `"id":${quoteJson(answer.id)},`;
  return `{"index":${index},${id}"output":${values(answer)},"latency_ms":${answer.latencyMs.toFixed(3)}}`;
}

interface Source extends AsyncDisposable {
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly where: string;
  /** What part of it is read, 0 to 1, where that can be known. */
  readonly done: () => number | undefined;
}

async function openSource(run: Run): Promise<Source> {
  const path = run.config.batch!;
  if (path === "-") {
    return {
      chunks: stdin(run),
      where: "stdin",
      done: () => undefined,
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  }
  let file: Deno.FsFile;
  let size: number;
  try {
    file = await Deno.open(path);
    size = (await file.stat()).size;
  } catch (error) {
    throw new ConfigError(`Cannot read ${path}: ${fileProblem(error)}`);
  }
  let read = 0;
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      read += chunk.length;
      controller.enqueue(chunk);
    },
  });
  const chunks = file.readable.pipeThrough(count);
  return {
    chunks,
    where: path,
    done: () => size > 0 ? read / size : undefined,
    [Symbol.asyncDispose]: () => chunks.cancel().catch(() => {}),
  };
}
