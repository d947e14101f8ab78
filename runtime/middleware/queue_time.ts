// How long calls wait until they run, noted on their trails for the access log.
import type { CallTrail, PredictCall } from "../core/call.ts";
import type { Observer } from "../core/observer.ts";

/** Notes it: for calls that run as one, each from its own request on. */
export function queueTimes(): Observer {
  const batches = new WeakMap<CallTrail, readonly PredictCall[]>();
  return {
    onBatch({ trail }, members) {
      if (trail) batches.set(trail, members);
    },
    onStart(call) {
      const now = performance.now();
      for (const { trail, receivedAt } of call.trail && batches.get(call.trail) || [call]) {
        if (trail && receivedAt !== undefined) trail.queuedMs = now - receivedAt;
      }
    },
  };
}
