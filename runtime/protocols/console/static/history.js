// What the server has done for the last minutes, as plots show it: differences between one event and the next.
/** @import { ActivityJson } from "../messages.ts" */

/** Seconds that the plots show. */
export const SPAN_SECONDS = 120;

/**
 * A second of the server's life; null = there was nothing to measure.
 *
 * @typedef {object} Sample
 * @property {number} time Seconds, of the browser's clock.
 * @property {number | null} rate Calls that ended in a second.
 * @property {number | null} failures Those of them that failed.
 * @property {number | null} p50 Milliseconds, as p95 and p99.
 * @property {number | null} p95
 * @property {number | null} p99
 * @property {number | null} tokens Pieces of text in a second.
 * @property {number} memory Bytes.
 */

/** Samples, the oldest first, and the counts of the newest. */
export class History {
  /** @type {readonly Sample[]} */
  samples = [];
  /** @type {ActivityJson | undefined} */
  #last;
  #time = 0;

  /**
   * The history with one more second, which is a new one so that a view sees the difference.
   *
   * @param {ActivityJson} activity
   * @param {number} time Seconds.
   */
  with(activity, time) {
    // Another process answers, or the same one anew: its counts begin elsewhere.
    const last = this.#last && this.#last.started <= activity.started ? this.#last : undefined;
    const seconds = time - this.#time;
    /** @param {"finished" | "failed" | "tokens"} key */
    const perSecond = (key) => last ? Math.max(0, activity[key] - last[key]) / seconds : null;
    const next = new History();
    next.#last = activity;
    next.#time = time;
    const kept = last ? this.samples.filter((sample) => sample.time > time - SPAN_SECONDS) : [];
    next.samples = [...kept, {
      time,
      rate: perSecond("finished"),
      failures: perSecond("failed"),
      p50: activity.p50 ?? null,
      p95: activity.p95 ?? null,
      p99: activity.p99 ?? null,
      tokens: perSecond("tokens"),
      memory: activity.rssBytes,
    }];
    return next;
  }
}
