// Load by nghttp2's h2load, and what it prints.
import { start } from "./children.ts";
import { quantile } from "./stats.ts";
import { Unavailable } from "./server_process.ts";

/** One block of load. */
export interface H2loadOptions {
  /** HOST:PORT. */
  readonly address: string;
  readonly path: string;
  /** The file with the request's body; the times are noted beside it. */
  readonly body: string;
  readonly connections: number;
  /** Requests at once on each connection. @default 1 */
  readonly streams?: number;
  /** How long the load lasts; or `requests`, how many there are. */
  readonly ms?: number;
  readonly requests?: number;
  /** `"grpc"` over HTTP/2, `"json"` over HTTP/1.1. */
  readonly protocol: "grpc" | "json";
  /** The least that an answer's body has: gRPC's errors come with HTTP status 200, but without a message. */
  readonly minBytes: number;
}

/** What a block of load gave. */
export interface H2loadFigures {
  readonly calls: number;
  /** Calls a second. */
  readonly rate: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

const HEADERS = {
  grpc: ["content-type: application/grpc", "te: trailers"],
  json: ["content-type: application/json"],
};

/**
 * Runs one block.
 *
 * @throws {Unavailable} where h2load is not installed
 * @throws {Error} where a call failed
 */
export async function h2load(options: H2loadOptions): Promise<H2loadFigures> {
  const log = `${options.body}.log`;
  try {
    const { success, stdout, stderr } = await output(toArgs(options, log));
    if (!success) throw new Error(`h2load failed: ${stderr || stdout}`);
    return toFigures(parseH2load(stdout), parseTimes(await Deno.readTextFile(log)), options.minBytes);
  } finally {
    await Deno.remove(log).catch(() => {}); // the next block's times would be appended
  }
}

async function output(args: string[]): Promise<{ success: boolean; stdout: string; stderr: string }> {
  try {
    const { success, stdout, stderr } = await start("h2load", { args }).output();
    const decoder = new TextDecoder();
    return { success, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr).trim() };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) throw new Unavailable("needs h2load (nghttp2-client)");
    throw error;
  }
}

function toArgs({ address, path, body, connections, streams = 1, ms, requests, protocol }: H2loadOptions, log: string) {
  return [
    ...protocol === "json" ? ["--h1"] : ["-m", String(streams)],
    ...["-c", String(connections), "-d", body, `--log-file=${log}`],
    ...requests === undefined ? ["-D", `${Math.round(ms!)}ms`] : ["-n", String(requests)],
    ...HEADERS[protocol].flatMap((header) => ["-H", header]),
    `http://${address}${path}`,
  ];
}

/** The totals that h2load prints. */
export interface H2loadTotals {
  readonly rate: number;
  readonly done: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly ok: number;
  readonly bodyBytes: number;
}

/** @throws {Error} where the text has no totals */
export function parseH2load(text: string): H2loadTotals {
  const finished = /^finished in .*?, ([\d.]+) req\/s/m.exec(text);
  const requests = /^requests: .* (\d+) done, (\d+) succeeded, (\d+) failed/m.exec(text);
  const codes = /^status codes: (\d+) 2xx/m.exec(text);
  const traffic = /^traffic: .*\((\d+)\) data$/m.exec(text);
  if (!finished || !requests || !codes || !traffic) throw new Error(`Cannot read what h2load printed: ${text}`);
  const [done, succeeded, failed] = requests.slice(1).map(Number);
  return {
    rate: Number(finished[1]),
    done: done!,
    succeeded: succeeded!,
    failed: failed!,
    ok: Number(codes[1]),
    bodyBytes: Number(traffic[1]),
  };
}

/** The milliseconds of each request in h2load's log: start, status and duration in µs, a line each. */
export function parseTimes(log: string): number[] {
  return log.split("\n").filter((line) => line !== "").map((line) => Number(line.split("\t")[2]) / 1000);
}

/** @throws {Error} where a call failed, by its status or by the size of its answer */
export function toFigures(totals: H2loadTotals, times: readonly number[], minBytes: number): H2loadFigures {
  const { done, succeeded, failed, ok, rate, bodyBytes } = totals;
  // Those that are cut off at the end of a timed run are in no count; their headers may have come.
  if (done === 0 || failed > 0 || succeeded < done || ok < done) {
    throw new Error(`Of ${done} calls ${failed} failed, and ${ok} were answered with a status of 2xx`);
  }
  if (bodyBytes < done * minBytes) {
    throw new Error(`${done} answers had ${bodyBytes} bytes, wanted ${minBytes} each: some were errors`);
  }
  return { calls: done, rate, p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
}
