// grpc.health.v1.Health: whether the server, a service or a function can be called.
import { ModelError, quote } from "../../core/error.ts";
import { linkSignals } from "../../core/signal.ts";
import {
  type AdapterHost,
  onlyRequest,
  type ProtocolAdapter,
  type RpcContext,
  type ServingStatus,
} from "../adapter.ts";
import { createService } from "../codec.ts";

const STATUS: Readonly<Record<ServingStatus, number>> = { serving: 1, not_serving: 2, unknown: 3 };

interface HealthCheckRequest {
  readonly service: string;
}

/** The standard health service. */
export const health: ProtocolAdapter = (host) => {
  const service = createService("grpc/health/v1/health.proto", "grpc.health.v1.Health", {
    Check: { handle: (requests) => check(host, requests) },
    List: { handle: () => list(host) },
    Watch: { handle: (requests, rpc) => watch(host, requests, rpc) },
  });
  return { rpc: [service] };
};

async function* check(host: AdapterHost, requests: AsyncIterable<unknown, void, undefined>) {
  const { service } = await onlyRequest<HealthCheckRequest>(requests);
  const status = host.health.status(service);
  if (status === "unknown") {
    throw new ModelError("not_found", `There is no service and no function ${quote(service)}`);
  }
  yield { status: STATUS[status] };
}

async function* list(host: AdapterHost) {
  const statuses: Record<string, { readonly status: number }> = {};
  for (const [service, status] of host.health.list()) statuses[service] = { status: STATUS[status] };
  yield await Promise.resolve({ statuses });
}

async function* watch(host: AdapterHost, requests: AsyncIterable<unknown, void, undefined>, rpc: RpcContext) {
  const { service } = await onlyRequest<HealthCheckRequest>(requests);
  using stop = linkSignals(rpc.signal, rpc.draining);
  for await (const status of host.health.watch(service, stop.signal)) yield { status: STATUS[status] };
  // A watch would never end by itself and hold up the shutdown.
  stop.signal.throwIfAborted();
}
