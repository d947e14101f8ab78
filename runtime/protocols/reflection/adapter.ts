// grpc.reflection: what grpcurl and its like ask for, from the descriptors of what is served.
import { type AdapterHost, type ProtocolAdapter, type ProtoFile, type RpcService, untilDraining } from "../adapter.ts";
import { createService } from "../codec.ts";

interface ReflectionRequest {
  readonly host: string;
  readonly file_by_filename?: string;
  readonly file_containing_symbol?: string;
  readonly file_containing_extension?: unknown;
  readonly all_extension_numbers_of_type?: string;
  readonly list_services?: string;
}

const NOT_FOUND = 5, INVALID_ARGUMENT = 3;

/** The standard reflection service, v1 and v1alpha. */
export const reflection: ProtocolAdapter = (host) => ({
  rpc: ["v1", "v1alpha"].map((version) => reflectionService(host, version)),
});

function reflectionService(host: AdapterHost, version: string): RpcService {
  return createService(`grpc/reflection/${version}/reflection.proto`, `grpc.reflection.${version}.ServerReflection`, {
    ServerReflectionInfo: {
      async *handle(requests, rpc) {
        for await (const request of untilDraining<ReflectionRequest>(requests, rpc)) {
          yield { valid_host: request.host, original_request: request, ...answer(host, request) };
        }
      },
    },
  });
}

function answer(host: AdapterHost, request: ReflectionRequest): object {
  const services = [...host.services()];
  if (request.list_services !== undefined) {
    const names = services.map(({ name }) => name).sort();
    return { list_services_response: { service: names.map((name) => ({ name })) } };
  }
  if (request.file_by_filename !== undefined) {
    return fileResponse(services, (file) => file.name === request.file_by_filename, request.file_by_filename);
  }
  if (request.file_containing_symbol !== undefined) {
    const symbol = request.file_containing_symbol;
    return fileResponse(services, (file) => file.symbols.includes(symbol), symbol);
  }
  const extended = request.all_extension_numbers_of_type;
  if (extended !== undefined && services.some(({ file }) => file.symbols.includes(extended))) {
    return { all_extension_numbers_response: { base_type_name: extended, extension_number: [] } };
  }
  if (extended !== undefined || request.file_containing_extension !== undefined) {
    return errorResponse(NOT_FOUND, "There are no extensions");
  }
  return errorResponse(INVALID_ARGUMENT, "The request asks for nothing");
}

function fileResponse(services: readonly RpcService[], matches: (file: ProtoFile) => boolean, wanted: string): object {
  const file = services.map((service) => service.file).find(matches);
  return file
    ? { file_descriptor_response: { file_descriptor_proto: [file.bytes] } }
    : errorResponse(NOT_FOUND, `There is no ${wanted.slice(0, 100)}`);
}

function errorResponse(code: number, message: string): object {
  return { error_response: { error_code: code, error_message: message } };
}
