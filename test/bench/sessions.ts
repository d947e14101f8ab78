// What an idle session costs: 10,000 sessions of one turn each in this process's memory, history and state included.
//
//   deno run -A --v8-flags=--expose-gc test/bench/sessions.ts [SESSIONS]
import { assemble, DEFAULT_LIMITS } from "../../runtime/assembly.ts";
import { defineModel, resolveModel } from "../../runtime/core/define.ts";
import { Registry } from "../../runtime/core/registry.ts";
import { inlinePool } from "../../runtime/workers/inline.ts";
import { chatCall, collect, SILENT } from "../harness/calls.ts";

const count = Number(Deno.args[0] ?? 10_000);
const gc = (globalThis as { readonly gc?: () => void }).gc;
if (!gc) throw new Error("It needs --v8-flags=--expose-gc");

const parrot = defineModel({
  session: { init: () => ({ turns: 0 }), idleMs: 3_600_000 },
  async *chat(message, ctx) {
    ctx.session.state.turns++;
    yield message.content;
  },
});
const registry = new Registry(SILENT);
registry.add(inlinePool(resolveModel(parrot, "parrot"), { log: SILENT }));
const limits = { ...DEFAULT_LIMITS, maxSessions: count + 1 };
const { invoke, close, sessions } = assemble({ ...limits, registry, adapters: [], interceptors: [], log: SILENT });

const say = (sessionId: string) =>
  collect(invoke(chatCall(`A message of ${sessionId}`, { model: "parrot", sessionId })));

async function measure(): Promise<Deno.MemoryUsage> {
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    gc!();
  }
  return Deno.memoryUsage();
}

// So that the heap has its size, and the code is compiled.
for (let i = 0; i < count; i++) await say("warm-up");
const before = await measure();
const start = performance.now();
for (let i = 0; i < count; i++) await say(crypto.randomUUID());
const ms = performance.now() - start;
const after = await measure();
const each = (key: "heapUsed" | "rss") => ((after[key] - before[key]) / count / 1024).toFixed(2);
console.log(`${sessions.size - 1} idle sessions: ${each("heapUsed")} KiB of heap each, RSS ${each("rss")} KiB each`);
console.log(`${(ms / count * 1000).toFixed(0)} µs a turn`);
await close();
