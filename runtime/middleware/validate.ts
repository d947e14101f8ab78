// Checks a call against what its function declares, so that handlers see only what their types promise.
import type { BatchCall, Call, Interceptor, Invoke, Reply } from "../core/call.ts";
import type { CatalogEntry } from "../core/catalog.ts";
import { checkInput, checkParams } from "../core/check.ts";
import { ModelError } from "../core/error.ts";

/** Checks inputs and params; a bad item of a batch fails alone. */
export function validate(find: (call: Call) => CatalogEntry): Interceptor {
  return (next) => (call) => {
    const entry = find(call);
    if (call.kind === "batch") return validateBatch(next, call, entry);
    const params = checkParams(entry.params, call.params);
    if (call.kind !== "chat" && entry.input) checkInput(entry.input, call.input);
    return next({ ...call, params });
  };
}

async function* validateBatch(
  next: Invoke,
  call: BatchCall,
  entry: CatalogEntry,
): AsyncIterable<Reply, void, undefined> {
  const good: { readonly index: number; readonly item: BatchCall["items"][number] }[] = [];
  for (const [index, item] of call.items.entries()) {
    try {
      if (entry.input) checkInput(entry.input, item.input);
      good.push({ index, item: { ...item, params: checkParams(entry.params, item.params) } });
    } catch (error) {
      if (!(error instanceof ModelError)) throw error;
      yield { type: "failure", index, error };
    }
  }
  if (good.length === 0) return;
  for await (const reply of next({ ...call, items: good.map(({ item }) => item) })) {
    yield reply.type === "session" ? reply : { ...reply, index: good[reply.index]!.index };
  }
}
