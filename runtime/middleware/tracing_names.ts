// Names and attributes of spans: OpenTelemetry's semantic conventions where there are any.
import type { Attributes } from "@opentelemetry/api";
import type { Call } from "../core/call.ts";
import type { ObservedModel } from "../core/observer.ts";

/** What a call's span is called: by what was called, which are few names. */
export function spanName({ kind, trail }: Call): string {
  return trail?.origin?.method ?? kind;
}

/** What is known of a call when it begins. No input, and nothing that a user wrote. */
export function attributesOf(call: Call): Attributes {
  const { id, model, version, kind } = call;
  return {
    ...originAttributes(call),
    ...modelAttributes({ name: model.slice(0, 100), version }),
    "tensorlet.kind": kind,
    "tensorlet.request_id": id,
    ...call.kind === "batch" && { "tensorlet.batch.size": call.items.length },
  };
}

/** The function that a span is about. */
export function modelAttributes({ name, version }: Omit<ObservedModel, "version"> & { version?: string | undefined }) {
  return { "tensorlet.model.name": name, ...version !== undefined && { "tensorlet.model.version": version } };
}

function originAttributes({ trail }: Call): Attributes {
  const origin = trail?.origin;
  if (!origin) return {};
  const { transport, method, peer } = origin;
  return { ...transport === "http" ? httpAttributes(method) : rpcAttributes(method), ...peer && peerAttributes(peer) };
}

function rpcAttributes(method: string): Attributes {
  const at = method.indexOf("/");
  return { "rpc.system": "grpc", "rpc.service": method.slice(0, at), "rpc.method": method.slice(at + 1) };
}

function httpAttributes(method: string): Attributes {
  const at = method.indexOf(" ");
  return { "http.request.method": method.slice(0, at), "http.route": method.slice(at + 1) };
}

function peerAttributes(peer: string): Attributes {
  const at = peer.lastIndexOf(":");
  return { "network.peer.address": peer.slice(0, at), "network.peer.port": Number(peer.slice(at + 1)) };
}
