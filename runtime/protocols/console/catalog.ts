// What the console's pages know of the functions.
import type { AdapterHost } from "../adapter.ts";
import type { CatalogJson, FunctionJson } from "./messages.ts";

/** The functions as they are now. */
export function catalogJson(host: AdapterHost): CatalogJson {
  const functions = Array.from(
    host.catalog.list(),
    ({ name, version, description, state, kinds, input, output, params }): FunctionJson => ({
      name,
      version,
      isDefault: host.catalog.get(name)?.version === version,
      description,
      state,
      kinds,
      input,
      output,
      params,
    }),
  );
  const { place, count } = host.process;
  return { grpcPort: host.addresses().grpc?.port ?? null, process: place, processes: count, functions };
}
