// A chat whose sessions end soon, and say so: "history" tells what it remembers, "slow N" speaks N pieces 50 ms apart,
// anything else comes back behind the number of the turn.
import { defineModel } from "tensorlet";

export default defineModel({
  session: { init: () => ({ said: new Map<string, bigint>() }), idleMs: 2_000 },
  predict: (inputs) => [...inputs],
  async *chat({ content }, ctx) {
    const { said } = ctx.session.state;
    said.set(content, (said.get(content) ?? 0n) + 1n);
    if (content === "history") {
      yield JSON.stringify(ctx.session.history.map((message) => message.content));
    } else if (content.startsWith("slow ")) {
      for (let i = 0; i < Number(content.slice(5)); i++) {
        yield `s${i} `;
        await new Promise((resolve) => setTimeout(resolve, 50));
        ctx.signal.throwIfAborted();
      }
    } else {
      yield `${ctx.session.turn + 1}: ${content}`;
    }
  },
  close(session, reason) {
    console.error(`closed ${session.id} ${reason} ${session.turn} ${[...session.state.said.values()].length}`);
  },
});
