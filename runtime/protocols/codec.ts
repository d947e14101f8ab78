// Loads the .proto files: from messages to bytes and back, with errors that say what is wrong.
import { loadSync, type MessageTypeDefinition, type ServiceDefinition } from "@grpc/proto-loader";
import { ModelError } from "../core/error.ts";
import type { RpcMethod, RpcService } from "./adapter.ts";
import { describeFile } from "./descriptor.ts";
import { cutFloats, MIN_LARGE_BYTES, type Span } from "./parts.ts";
import { checkWire, WireError, type WireMessage } from "./wire_check.ts";

const PROTOS = new URL("../../protos/", import.meta.url);
const OPTIONS = { keepCase: true, longs: Number, defaults: true } as const;

/** What an adapter says of a method; the rest is in the .proto file. */
export interface MethodHandler {
  readonly handle: RpcMethod["handle"];
  /** A field of the request of many packed floats: where they are many they come as a Float32Array. */
  readonly requestFloats?: string;
  /** Instead of the request message's own decoder; its bytes are well formed. */
  readonly decode?: RpcMethod["decode"];
  /** A message type of which `decode` makes no object for each element: its elements are not counted. */
  readonly uncounted?: string;
  /** Instead of the response message's own encoder, which it gets. */
  readonly encode?: (message: unknown, encode: RpcMethod["encode"]) => Uint8Array;
}

function load(file: string) {
  return loadSync(decodeURIComponent(new URL(file, PROTOS).pathname), OPTIONS);
}

/** A service of `protos/`, with a handler for each of its methods. */
export function createService(
  file: string,
  name: string,
  handlers: Readonly<Record<string, MethodHandler>>,
): RpcService {
  const definitions = load(file);
  const packageName = name.slice(0, name.lastIndexOf("."));
  const descriptor = describeFile(file, packageName, definitions);
  const methods = Object.entries(definitions[name] as ServiceDefinition).map(([methodName, definition]): RpcMethod => {
    const handler = handlers[methodName]!;
    const requestType = (definition.requestType.type as { readonly name: string }).name;
    const wire = descriptor.messages.get(`.${packageName}.${requestType}`)!;
    const encode = (message: unknown) => definition.responseSerialize(message as object);
    return {
      name: methodName,
      clientStreaming: definition.requestStream,
      serverStreaming: definition.responseStream,
      decode: createDecoder(wire, {
        deserialize: handler.decode ?? definition.requestDeserialize as Deserialize,
        floatsName: handler.requestFloats,
        uncounted: descriptor.messages.get(`.${handler.uncounted}`),
      }),
      encode: handler.encode ? (message) => handler.encode!(message, encode) : encode,
      handle: handler.handle,
    };
  });
  return { name, methods, file: descriptor.file };
}

type Deserialize = (bytes: Uint8Array) => unknown;

interface DecoderOptions {
  readonly deserialize: Deserialize;
  readonly floatsName: string | undefined;
  readonly uncounted: WireMessage | undefined;
}

/** Floats in more runs than that are left to protobufjs. */
const MAX_RUNS = 1000;

function createDecoder(
  wire: WireMessage,
  { deserialize, floatsName, uncounted }: DecoderOptions,
): RpcMethod["decode"] {
  const floatsNumber = [...wire.fields].find(([, { name }]) => name === floatsName)?.[0];
  return (bytes) => {
    try {
      const spans: Span[] = [];
      const watched = bytes.length < MIN_LARGE_BYTES ? undefined : floatsNumber;
      checkWire(bytes, wire, { watched, onSpan: (...span) => spans.push(span), uncounted });
      if (spans.length === 0 || spans.length > MAX_RUNS) return deserialize(bytes);
      const { floats, rest } = cutFloats(bytes, spans);
      return { ...deserialize(rest) as object, [floatsName!]: floats };
    } catch (error) {
      const why = error instanceof WireError ? error.message : "it is not a valid message";
      throw new ModelError("invalid_argument", `Cannot decode the request as ${wire.name}: ${why}`);
    }
  };
}

/** The encoder of one message type of `protos/`. */
export function createEncoder(file: string, name: string): (message: object) => Uint8Array {
  return (load(file)[name] as MessageTypeDefinition<object, object>).serialize;
}
