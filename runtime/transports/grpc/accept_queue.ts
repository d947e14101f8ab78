// What waits in the kernel for a listener of this process, though other processes may listen on the same port: as Linux
// shows it.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

const LISTENING = "0A";

/** The connections that a listener has not taken yet. */
export class AcceptQueue {
  readonly #port: number;
  readonly #inode: string | undefined;

  /** Of the listener of this process on that port. */
  constructor(port: number) {
    this.#port = port;
    const rows = listenersOn(port);
    // Only this process's? That spares looking at all of its descriptors.
    this.#inode = rows.length === 1 ? rows[0]!.inode : ownInode(rows.map(({ inode }) => inode));
  }

  /** How many wait; undefined where that cannot be told. */
  get length(): number | undefined {
    return listenersOn(this.#port).find(({ inode }) => inode === this.#inode)?.waiting;
  }
}

interface Row {
  readonly inode: string;
  readonly waiting: number;
}

// Nothing where the tables cannot be read: for want of descriptors, say.
function listenersOn(port: number): readonly Row[] {
  return ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((table) => {
    let text = "";
    try {
      text = readFileSync(table, "utf8");
    } catch {
      return [];
    }
    return parseListeners(text, port);
  });
}

/** The rows of `/proc/net/tcp` about listeners on a port. */
export function parseListeners(table: string, port: number): readonly Row[] {
  return table.split("\n").slice(1).flatMap((line) => {
    const [, local, , state, queues, , , , , inode] = line.trim().split(/\s+/);
    if (state !== LISTENING || Number.parseInt(local!.split(":")[1]!, 16) !== port) return [];
    return [{ inode: inode!, waiting: Number.parseInt(queues!.split(":")[1]!, 16) }];
  });
}

function ownInode(candidates: readonly string[]): string | undefined {
  try {
    const names = new Map(candidates.map((inode) => [`socket:[${inode}]`, inode]));
    for (const descriptor of readdirSync("/proc/self/fd")) {
      const inode = names.get(targetOf(descriptor));
      if (inode !== undefined) return inode;
    }
  } catch {
    // It cannot be told.
  }
  return undefined;
}

function targetOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return ""; // it is closed by now
  }
}
