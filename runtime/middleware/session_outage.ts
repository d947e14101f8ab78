// What a session store's failures are to callers and to the log.
import { ModelError } from "../core/error.ts";
import type { Logger } from "../core/log.ts";
import type { Lease, SessionRecord, SessionStore } from "./session_store.ts";

/** The error of a call whose session store does not answer. */
export function storeUnreachable(cause?: unknown): ModelError {
  return new ModelError("unavailable", "The session store cannot be reached: send the message again in a moment", {
    details: { retryAfterMs: 1000 },
    cause,
  });
}

/** A store whose failures are `unavailable`; they are logged once an outage, and so is its end. */
export function reportOutages(store: SessionStore, log: Logger): SessionStore {
  let since: number | undefined;
  const watch = async <T>(ask: () => Promise<T>): Promise<T> => {
    try {
      const answer = await ask();
      if (since !== undefined) {
        log.info("The session store can be reached again", { outageMs: Date.now() - since });
        since = undefined;
      }
      return answer;
    } catch (error) {
      if (error instanceof ModelError) throw error;
      if (since === undefined) {
        since = Date.now();
        log.error("The session store cannot be reached: chats are refused until it is there again", { cause: error });
      }
      throw storeUnreachable(error);
    }
  };
  return {
    durable: store.durable,
    lock: (key, signal): Promise<Lease> => watch(() => store.lock(key, signal)),
    load: (key): Promise<SessionRecord | undefined> => watch(() => store.load(key)),
    save: (key, record, ttlMs, lease) => watch(() => store.save(key, record, ttlMs, lease)),
    touch: (key, servedBy, ttlMs) => watch(() => store.touch(key, servedBy, ttlMs)),
    delete: (key, lease) => watch(() => store.delete(key, lease)),
    count: () => watch(() => store.count()),
    close: () => store.close(),
  };
}
