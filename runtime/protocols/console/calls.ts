// The calls that the console's pages make.
import type { Call, Reply } from "../../core/call.ts";
import { findEntry } from "../../core/catalog.ts";
import { toModelError } from "../../core/error.ts";
import type { NamedTensors } from "../../core/tensor.ts";
import { type AdapterHost, callBase, type HttpContext, invokePredict } from "../adapter.ts";
import { eventStream, readJson, started } from "../http.ts";
import type { JsonTensor, PredictJson, StreamEvent } from "./messages.ts";
import { inputOf, readCall, readChat } from "./request.ts";
import { tensorToJson } from "./tensor.ts";

/** Answers a {@linkcode PredictJson}. */
export async function predict(host: AdapterHost, request: Request, http: HttpContext): Promise<Response> {
  const began = performance.now();
  const entry = findEntry(host.catalog, http.params.name!, "predict", "the function's name");
  const body = readCall(await readJson(request, http));
  const call = { ...callBase(http, entry, body.params), kind: "predict", input: inputOf(entry, body) } as const;
  let outputs: PredictJson["outputs"] = {};
  for await (const output of invokePredict(host.invoke, call)) outputs = toJson(output);
  return json({ outputs, version: entry.version, latencyMs: elapsed(began), requestId: http.id } satisfies PredictJson);
}

/** Answers {@linkcode StreamEvent}s, as the function makes them; it stops when the page leaves. */
export async function stream(host: AdapterHost, request: Request, http: HttpContext): Promise<Response> {
  const entry = findEntry(host.catalog, http.params.name!, "stream", "the function's name");
  const body = readCall(await readJson(request, http));
  return await events(host, { ...callBase(http, entry, body.params), kind: "stream", input: inputOf(entry, body) });
}

/** Answers one turn of a conversation as {@linkcode StreamEvent}s. */
export async function chat(host: AdapterHost, request: Request, http: HttpContext): Promise<Response> {
  const entry = findEntry(host.catalog, http.params.name!, "chat", "the function's name");
  const { sessionId, content, params } = readChat(await readJson(request, http));
  const message = { role: "user", content } as const;
  return await events(host, { ...callBase(http, entry, params), kind: "chat", sessionId, message, session: undefined });
}

/** A JSON answer that no cache keeps. */
export function json(value: unknown): Response {
  return Response.json(value, { headers: { "cache-control": "no-store", "x-content-type-options": "nosniff" } });
}

async function events(host: AdapterHost, call: Call): Promise<Response> {
  return eventStream(await started(serialised(host, call)));
}

// What fails before the first event has a status of its own; then that has been sent, so the failure is the last event.
async function* serialised(host: AdapterHost, call: Call): AsyncGenerator<string, void, undefined> {
  const began = performance.now();
  let begun = false;
  try {
    for await (const reply of host.invoke(call)) {
      const event = eventOf(reply);
      if (!event) continue;
      begun = true;
      yield JSON.stringify(event);
    }
    yield JSON.stringify({ type: "done", ms: elapsed(began) } satisfies StreamEvent);
  } catch (thrown) {
    if (!begun) throw thrown;
    const { code, message } = toModelError(thrown, call.id);
    yield JSON.stringify({ type: "error", code, message } satisfies StreamEvent);
  }
}

function eventOf(reply: Reply): StreamEvent | undefined {
  if (reply.type === "delta" && reply.text !== "") return { type: "token", text: reply.text };
  if (reply.type === "tensors") return { type: "tensors", outputs: toJson(reply.output) };
  return undefined;
}

function toJson(output: NamedTensors): Record<string, JsonTensor> {
  return Object.fromEntries(Object.entries(output).map(([name, value]) => [name, tensorToJson(value)]));
}

function elapsed(since: number): number {
  return Math.round((performance.now() - since) * 100) / 100;
}
