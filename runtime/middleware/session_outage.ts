// What a session store's failures are to callers and to the log.
import { ModelError } from "../core/error.ts";
import type { Logger } from "../core/log.ts";
import type { SessionStore } from "./session_store.ts";

/** The error of a call whose session store does not answer. */
export function storeUnreachable(cause?: unknown): ModelError {
  return new ModelError("unavailable", "The session store cannot be reached: send the message again in a moment", {
    details: { retryAfterMs: 1000 },
    cause,
  });
}

/** A store whose failures are `unavailable`; they are logged once an outage, and so is its end. */
export function reportOutages(store: SessionStore, log: Logger): SessionStore {
  let outage: { readonly of: keyof SessionStore; readonly since: number } | undefined;
  const watch = async <T>(what: keyof SessionStore, ask: () => Promise<T>): Promise<T> => {
    try {
      const answer = await ask();
      // A store that can be read and not written is no store that can be reached.
      if (outage && (what === outage.of || what === "save")) {
        log.info("The session store can be reached again", { outageMs: Date.now() - outage.since });
        outage = undefined;
      }
      return answer;
    } catch (error) {
      if (error instanceof ModelError) throw error;
      if (!outage) {
        outage = { of: what, since: Date.now() };
        log.error("The session store cannot be reached: chats are refused until it is there again", { cause: error });
      }
      throw storeUnreachable(error);
    }
  };
  return {
    durable: store.durable,
    lock: (...args) => watch("lock", () => store.lock(...args)),
    load: (...args) => watch("load", () => store.load(...args)),
    save: (...args) => watch("save", () => store.save(...args)),
    touch: (...args) => watch("touch", () => store.touch(...args)),
    delete: (...args) => watch("delete", () => store.delete(...args)),
    count: () => watch("count", () => store.count()),
    close: () => store.close(),
  };
}
