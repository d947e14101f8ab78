// Sessions as bytes: a byte for the format, then V8's format for structured clones, so that a state may hold what it
// may hold elsewhere (maps, typed arrays, big integers).
import { deserialize, serialize } from "node:v8";
import { ModelError } from "../core/error.ts";
import type { SessionRecord } from "../middleware/session_store.ts";

/** What is stored as one value; who served it last stands beside it, since that changes alone. */
export type StoredSession = Omit<SessionRecord, "servedBy">;

const FORMAT = 1;

/** The bytes of a session. */
export function encodeSession({ snapshot, version }: StoredSession): Uint8Array<ArrayBuffer> {
  const body = bytesOf({ snapshot, version });
  const bytes = new Uint8Array(1 + body.byteLength);
  bytes[0] = FORMAT;
  bytes.set(body, 1);
  return bytes;
}

function bytesOf(session: StoredSession): Uint8Array {
  try {
    return serialize(session);
  } catch (cause) {
    throw new ModelError("internal", "The session's state cannot be saved: it holds what cannot leave its process", {
      cause,
    });
  }
}

/** The session of its bytes; throws `data_loss` for what is none. */
export function decodeSession(bytes: Uint8Array): StoredSession {
  try {
    if (bytes[0] !== FORMAT) throw new TypeError(`The session is of format ${bytes[0]}, wanted ${FORMAT}`);
    // A copy: Deno reads typed arrays from the wrong place where the bytes are not at the start of their buffer.
    return deserialize(new Uint8Array(bytes.subarray(1))) as StoredSession;
  } catch (cause) {
    throw new ModelError("data_loss", "The session cannot be read: another version of the server has written it", {
      cause,
    });
  }
}
