// Runs rows: starts the servers that a row needs, loads them in turn, and ends those that no later row needs.
import { cpuMs } from "./process_tree.ts";
import type { Figures, RowResult, Skipped } from "./results.ts";
import type { Contender, Row } from "./rows.ts";
import { ServerProcess, Unavailable } from "./server_process.ts";
import { ON_V8, type ServerSpec } from "./servers.ts";
import { orderOf } from "./stats.ts";
import type { Workbench } from "./workbench.ts";

/** How long a run is. */
export interface RunOptions {
  readonly rounds: number;
  /** How much load a block is: 1 is a whole run's. */
  readonly scale: number;
  readonly progress: (text: string) => void;
}

type Running = ServerProcess & { readonly address: string };

/** The rows that could be run, and what could not. */
export async function runRows(
  rows: readonly Row[],
  bench: Workbench,
  options: RunOptions,
): Promise<{ readonly rows: RowResult[]; readonly skipped: Skipped[] }> {
  const skips = new Map<string, string>();
  const results: RowResult[] = [];
  await using running = new Servers(bench, skips);
  for (const [index, row] of rows.entries()) {
    options.progress(row.title);
    await running.keepOnly(rows.slice(index).flatMap(({ contenders }) => contenders.map(({ server }) => server)));
    results.push(await runRow(row, bench, running, skips, options));
  }
  return { rows: results, skipped: [...skips].map(([what, why]) => ({ what, why })) };
}

/** The servers that run, each started once. One that cannot run is not tried again. */
class Servers implements AsyncDisposable {
  readonly #bench: Workbench;
  readonly #skips: Map<string, string>;
  readonly #started = new Map<ServerSpec, Running | undefined>();

  constructor(bench: Workbench, skips: Map<string, string>) {
    this.#bench = bench;
    this.#skips = skips;
  }

  async get(spec: ServerSpec): Promise<Running | undefined> {
    if (!this.#started.has(spec)) {
      this.#started.set(
        spec,
        await startServer(spec, this.#bench).catch((error) => skip(this.#skips, spec.name, error)),
      );
    }
    return this.#started.get(spec);
  }

  async keepOnly(specs: readonly ServerSpec[]): Promise<void> {
    for (const [spec, server] of this.#started) {
      if (!server || specs.includes(spec)) continue;
      await server[Symbol.asyncDispose]();
      this.#started.delete(spec);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.keepOnly([]);
  }
}

/** Starts a server that answers as it should. */
export async function startServer(spec: ServerSpec, bench: Workbench): Promise<Running> {
  const server = await ServerProcess.start(await spec.command(bench));
  try {
    await spec.check(server.address, bench);
    if (spec.isRestless) server.pause();
    return server;
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
}

async function runRow(
  row: Row,
  bench: Workbench,
  servers: Servers,
  skips: Map<string, string>,
  { rounds, scale }: RunOptions,
): Promise<RowResult> {
  const measured = new Map<Contender, (Figures | undefined)[]>();
  for (const contender of row.contenders) {
    if (await servers.get(contender.server)) measured.set(contender, []);
  }
  for (let round = -1; round < rounds; round++) {
    for (const contender of orderOf([...measured.keys()], Math.max(round, 0))) {
      const server = (await servers.get(contender.server))!;
      try {
        if (round < 0) await warmUp(contender, server, bench, ON_V8.has(contender.server) ? row.warmUps * scale : 1);
        else measured.get(contender)![round] = await measure(contender, server, bench, scale);
      } catch (error) {
        skip(skips, `${row.title}: ${contender.name}`, error);
        measured.delete(contender);
      }
    }
  }
  const { id, title, figure, goals } = row;
  return { id, title, figure, goals, contenders: [...measured].map(([{ name }, rounds]) => ({ name, rounds })) };
}

// By whole blocks, however short the measured ones are; a short run has fewer.
async function warmUp(contender: Contender, server: Running, bench: Workbench, blocks: number): Promise<void> {
  for (let block = 0; block < blocks; block++) await measure(contender, server, bench, 1);
}

async function measure(
  { load, server: { isRestless } }: Contender,
  server: Running,
  bench: Workbench,
  scale: number,
): Promise<Figures> {
  if (isRestless) server.resume();
  const before = cpuMs(server.pid);
  const { calls, figures } = await load({ address: server.address, bench, scale });
  const cpu = (cpuMs(server.pid) - before) / calls;
  if (isRestless) server.pause();
  return { ...figures, cpu };
}

function skip(skips: Map<string, string>, what: string, error: unknown): undefined {
  const text = error instanceof Error ? error.message : String(error);
  skips.set(what, error instanceof Unavailable ? text : `failed: ${text}`);
}
