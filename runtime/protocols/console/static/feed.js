// What the server tells of itself, as long as the page is open.
import { openFeed } from "./api.js";
import { History } from "./history.js";
import { useEffect, useState } from "./view.js";
/** @import { ActivityJson, CatalogJson, FeedEvent } from "../messages.ts" */

/**
 * @typedef {object} Feed
 * @property {"connecting" | "connected" | "lost"} state
 * @property {CatalogJson | undefined} catalog
 * @property {ActivityJson | undefined} activity
 * @property {History} history
 */

/** @type {Feed} */
const START = { state: "connecting", catalog: undefined, activity: undefined, history: new History() };

/** The feed, and the view is drawn again whenever it changes. The browser connects again by itself. */
export function useFeed() {
  const [feed, setFeed] = useState(START);
  useEffect(() => {
    const source = openFeed();
    source.onerror = () => setFeed((before) => ({ ...before, state: "lost" }));
    source.onmessage = ({ data, timeStamp }) => {
      /** @type {FeedEvent} */
      const { activity, catalog } = JSON.parse(data);
      const time = (performance.timeOrigin + timeStamp) / 1000;
      setFeed((before) => ({
        state: "connected",
        catalog: catalog ?? before.catalog,
        activity,
        history: before.history.with(activity, time),
      }));
    };
    return () => source.close();
  }, []);
  return feed;
}
