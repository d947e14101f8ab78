// Deno from 2.9.4 on dies when a peer's GOAWAY arrives on an HTTP/2 session that has served streams: its JavaScript
// then calls session.close() inside nghttp2's receive callback, which re-enters it. https://github.com/denoland/deno/issues/36788
import http2 from "node:http2";
import process from "node:process";
import { Duplex } from "node:stream";

interface Session {
  readonly destroyed: boolean;
  readonly closed: boolean;
  close(callback?: () => void): void;
  once(event: "close", callback: () => void): void;
}

let patched = false;

/** The first and the last version of Deno that are known to have the fault. */
const FIRST_BAD = [2, 9, 4], LAST_BAD = [2, 9, 6];

/** Whether this version of Deno is known to have the fault. */
export function hasGoawayFault(version: string): boolean {
  return isAtLeast(version, FIRST_BAD) && !isAtLeast(version, LAST_BAD.with(2, LAST_BAD[2]! + 1));
}

/** Whether it may have it: later versions too, until one is known to be cured. */
export function mayHaveGoawayFault(version: string): boolean {
  return isAtLeast(version, FIRST_BAD);
}

function isAtLeast(version: string, bound: readonly number[]): boolean {
  const parts = version.split(/[.+-]/).map(Number);
  const at = bound.findIndex((part, i) => part !== parts[i]);
  return at < 0 || parts[at]! > bound[at]!;
}

/**
 * Makes `Http2Session.close()` run on a later turn, where the fault is. Call it before any grpc-js object is made,
 * server or client.
 */
export function patchHttp2Close(): void {
  const version = process.versions["deno"]; // undefined on Node, where clients run too
  if (patched || version === undefined || !mayHaveGoawayFault(version)) return;
  patched = true;
  const prototype = sessionPrototype();
  const close = prototype.close;
  prototype.close = function (this: Session, callback?: () => void) {
    // The callback is called in every branch: a shutdown waits for it.
    const run = () => {
      if (this.destroyed) callback && queueMicrotask(callback);
      else if (this.closed) callback && this.once("close", callback);
      else close.call(this, callback);
    };
    if (this.closed || this.destroyed) run();
    else setImmediate(run);
  };
}

// The class is not exported: an instance that talks to nobody leads to it.
function sessionPrototype(): Session {
  const wire = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  const session = http2.connect("http://localhost", { createConnection: () => wire });
  session.on("error", () => {});
  let prototype = Object.getPrototypeOf(session);
  while (!Object.hasOwn(prototype, "close")) prototype = Object.getPrototypeOf(prototype);
  session.destroy();
  wire.destroy();
  return prototype;
}
