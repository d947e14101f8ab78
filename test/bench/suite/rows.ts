// What is measured: each row's contenders, the load that each of them gets, and the goals.
import { h2load, type H2loadOptions } from "./h2load.ts";
import type { Figure, Figures, Goal } from "./results.ts";
import * as servers from "./servers.ts";
import type { ServerSpec } from "./servers.ts";
import { quantile } from "./stats.ts";
import type { Workbench } from "./workbench.ts";

/** A server under load. */
export interface Target {
  readonly address: string;
  readonly bench: Workbench;
  /** How much there is of it: 1 is a block of a whole run. */
  readonly scale: number;
}

/** One block of calls: how many there were, and what they gave. */
export type Load = (target: Target) => Promise<{ readonly calls: number; readonly figures: Figures }>;

/** One of a row's columns. */
export interface Contender {
  readonly name: string;
  readonly server: ServerSpec;
  readonly load: Load;
}

/** One thing that is measured of several servers in turn. */
export interface Row {
  readonly id: string;
  readonly title: string;
  /** What the row is about, and the plot shows. */
  readonly figure: Figure;
  /** Blocks of a whole run before the first that counts, of a server on V8: a small call costs half in the end. */
  readonly warmUps: number;
  readonly contenders: readonly Contender[];
  readonly goals: readonly Goal[];
}

const OURS = "Tensorlet";
const TWO = "Tensorlet, 2 processes";
const UNARY = "/inference.v1.ModelInference/Predict";
const TENSORS = "/inference.InferenceService/Predict";

/** All rows, in the order in which they are run. */
export const ROWS: readonly Row[] = [
  {
    id: "tensor",
    title: "unary, 602 KB float32 as bytes",
    figure: "p50",
    warmUps: 8,
    contenders: fixtures(byPython("tensor", 120)),
    goals: [
      { figure: "p50", of: OURS, to: "grpc-js, Deno", atMost: 0.6 },
      { figure: "p50", of: OURS, to: "Python", atMost: 0.75 },
      { figure: "p99", of: OURS, to: "Python", atMost: 1.5 },
    ],
  },
  {
    id: "floats",
    title: "unary, 150,528 packed floats",
    figure: "p50",
    warmUps: 6,
    contenders: fixtures(byPython("floats", 30)),
    goals: [
      { figure: "p50", of: OURS, to: "Python", atMost: 0.2 },
      { figure: "p50", of: OURS, to: "C++", atMost: 1.5 },
    ],
  },
  {
    id: "small",
    title: "small unary calls, 4 connections of 16",
    figure: "rate",
    warmUps: 20,
    contenders: fixtures(byH2load("small", { path: UNARY, connections: 4, streams: 16, minBytes: 19 })),
    goals: [
      { figure: "rate", of: OURS, to: "Python", atLeast: 4 },
      { figure: "rate", of: OURS, to: "grpc-js, Deno", atLeast: 2 },
      { figure: "rate", of: TWO, to: "Python", atLeast: 6 },
      { figure: "rate", of: TWO, to: OURS, atLeast: 1.4 },
    ],
  },
  {
    id: "streams",
    title: "streams of 100 tokens, 2 connections of 4",
    figure: "rate",
    warmUps: 15,
    contenders: fixtures(
      byH2load("stream", {
        path: "/inference.v1.ModelInference/StreamPredict",
        connections: 2,
        streams: 4,
        minBytes: 100 * 9,
      }),
    ),
    goals: [
      { figure: "rate", of: OURS, to: "Python", atLeast: 8 },
      { figure: "rate", of: OURS, to: "grpc-js, Deno", atLeast: 2 },
    ],
  },
  {
    id: "call",
    title: "small unary call, one caller",
    figure: "p50",
    warmUps: 3,
    contenders: fixtures(byPython("small", 500)),
    goals: [],
  },
  {
    id: "stream",
    title: "stream of 100 tokens, one caller",
    figure: "first",
    warmUps: 3,
    contenders: fixtures(oneStream),
    goals: [],
  },
  {
    id: "json",
    title: "602 KB array to array, gRPC and JSON over HTTP",
    figure: "p50",
    warmUps: 4,
    contenders: [
      { name: OURS, server: servers.TENSORLET, load: byPython("array_by_grpc", 60) },
      { name: "JSON over HTTP", server: servers.JSON_HTTP, load: byPython("array_by_json", 6) },
    ],
    goals: [{ figure: "p50", of: OURS, to: "JSON over HTTP", atMost: 0.2 }],
  },
  digitsRow(16),
  digitsRow(64),
  {
    id: "batching",
    title: "digits, 64 callers, with and without batching",
    figure: "rate",
    warmUps: 12,
    contenders: ["digits", "digits_unbatched"].map((name) => ({
      name: name === "digits" ? OURS : "unbatched",
      server: servers.TENSORLET_TWINS,
      load: byH2load(name, { path: TENSORS, connections: 64, minBytes: 45 }),
    })),
    goals: [
      { figure: "rate", of: OURS, to: "unbatched", atLeast: 3 },
      { figure: "p50", of: OURS, to: "unbatched", atMost: 1 },
    ],
  },
  {
    id: "decode",
    title: "8 texts of austen, at once and one after the other",
    figure: "tokens",
    warmUps: 2,
    contenders: [
      { name: OURS, server: servers.TENSORLET_MODELS, load: texts(true) },
      { name: "one after the other", server: servers.TENSORLET_MODELS, load: texts(false) },
    ],
    goals: [
      { figure: "tokens", of: OURS, to: "one after the other", atLeast: 2.5 },
      { figure: "first", of: OURS, to: "one after the other", atMost: 1 },
    ],
  },
];

function fixtures(load: Load): Contender[] {
  const { TENSORLET, TENSORLET_WORKER, TENSORLET_2, PYTHON, CPP, BARE_DENO, BARE_NODE } = servers;
  return [TENSORLET, TENSORLET_WORKER, TENSORLET_2, PYTHON, CPP, BARE_DENO, BARE_NODE].map((server) => ({
    name: server.name,
    server,
    load,
  }));
}

function digitsRow(callers: number): Row {
  const json = (server: ServerSpec, body: string, path: string) => ({
    name: server.name,
    server,
    load: byH2load(body, { path, connections: callers, minBytes: 100, protocol: "json" }),
  });
  const contenders: Contender[] = [
    {
      name: OURS,
      server: servers.TENSORLET_MODELS,
      load: byH2load("digits", { path: TENSORS, connections: callers, minBytes: 45 }),
    },
    json(servers.LITSERVE, "digits_litserve", "/predict"),
    json(servers.LITSERVE_BATCHED, "digits_litserve", "/predict"),
    json(servers.BENTOML, "digits_bentoml", "/predict"),
    json(servers.BENTOML_BATCHED, "digits_bentoml", "/predict"),
    json(servers.MLSERVER, "digits_mlserver", "/v2/models/digits/infer"),
    {
      name: servers.MLSERVER_GRPC.name,
      server: servers.MLSERVER_GRPC,
      load: byH2load("digits_oip", {
        path: "/inference.GRPCInferenceService/ModelInfer",
        connections: callers,
        minBytes: 45,
      }),
    },
  ];
  return {
    id: `digits${callers}`,
    title: `digits, ${callers} callers, under four frameworks`,
    figure: "rate",
    warmUps: 12,
    contenders,
    goals: contenders.slice(1).map(({ name }) => ({ figure: "rate", of: OURS, to: name, atLeast: 3 })),
  };
}

const H2LOAD_MS = 1_200;
const LEAST_H2LOAD_MS = 100;

function byH2load(
  body: string,
  options: Omit<H2loadOptions, "address" | "body" | "protocol" | "ms"> & { readonly protocol?: "json" },
): Load {
  return async ({ address, bench, scale }) => {
    const ms = Math.max(H2LOAD_MS * scale, LEAST_H2LOAD_MS);
    const { calls, rate, p50, p99 } = await h2load({
      protocol: "grpc",
      ...options,
      address,
      body: bench.body(body),
      ms,
    });
    return { calls, figures: { rate, p50, p99 } };
  };
}

function byPython(command: string, calls: number): Load {
  return async ({ address, bench, scale }) => {
    const { ms } = await (await bench.client()).do(command, { address, calls: Math.ceil(calls * scale) });
    return { calls: ms!.length, figures: { p50: quantile(ms!, 0.5), p99: quantile(ms!, 0.99) } };
  };
}

const ONE_STREAM_CALLS = 60;
const TOKENS = 100;

async function oneStream({ address, bench, scale }: Target): ReturnType<Load> {
  const calls = Math.ceil(ONE_STREAM_CALLS * scale);
  const { ms, firsts } = await (await bench.client()).do("stream", { address, calls });
  const figures = { first: quantile(firsts!, 0.5), tokens: TOKENS / quantile(ms!, 0.5) * 1000 };
  return { calls, figures };
}

function texts(atOnce: boolean): Load {
  return async ({ address, bench }) => {
    const { ms, tokens, firsts } = await (await bench.client()).do("texts", { address, at_once: atOnce });
    return { calls: tokens!, figures: { tokens: tokens! / ms![0]! * 1000, first: quantile(firsts!, 0.5) } };
  };
}
