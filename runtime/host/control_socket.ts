// Where `list` and `generate` ask a running server: a Unix socket that only its owner reaches, named after the port.
import type { Logger } from "../core/log.ts";
import { within } from "../core/signal.ts";
import type { ServerStatus } from "./status.ts";

/** What a server answers. */
export interface ControlAnswer {
  readonly pid: number;
  /** Missing where the server's process is just being replaced. */
  readonly status?: ServerStatus;
}

const ANSWER_MS = 5_000;

/** Answers them from now on; returns what ends it. A server that cannot runs without it. */
export function openControlSocket(
  port: number,
  status: () => Promise<ServerStatus | undefined>,
  log: Logger,
): () => void {
  let isClosed = false;
  let close = () => {};
  listen(port).then(({ listener, path }) => {
    close = () => {
      listener.close();
      removeIfThere(path);
    };
    if (isClosed) return close();
    return serve(listener, status);
  }).catch((cause) => log.debug("`list` cannot ask this server", { cause }));
  return () => {
    isClosed = true;
    close();
  };
}

/** Asks the server on a port; undefined where none runs. */
export async function askServer(port: number): Promise<ControlAnswer | undefined> {
  for (const folder of folders()) {
    if (!isOwn(folder)) continue;
    const connection = await connect(`${folder}/${port}.sock`);
    if (!connection) continue;
    let text = "";
    const reading = connection.readable.pipeThrough(new TextDecoderStream()).pipeTo(
      new WritableStream({ write: (part) => void (text += part) }),
    );
    const isWhole = await within(ANSWER_MS, reading.catch(() => {}));
    if (isWhole && text !== "") return JSON.parse(text);
    if (!isWhole) connection.close();
    throw new Error(`Cannot ask for the functions: the server on port ${port} does not answer`);
  }
  return undefined;
}

async function listen(port: number): Promise<{ readonly listener: Deno.UnixListener; readonly path: string }> {
  const folder = folders().find((folder) => makeOwn(folder));
  if (folder === undefined) throw new Error(`none of ${folders().join(", ")} is this user's alone`);
  const path = `${folder}/${port}.sock`;
  // What answers belongs to a server on another address of this machine; the rest is what a killed one left.
  const other = await connect(path);
  if (other) {
    other.close();
    throw new Error(`${path} belongs to another server`);
  }
  removeIfThere(path);
  return { listener: Deno.listen({ transport: "unix", path }), path };
}

async function serve(listener: Deno.UnixListener, status: () => Promise<ServerStatus | undefined>): Promise<void> {
  for await (const connection of listener) {
    answer(connection, status).catch(() => {}); // whoever asked has left
  }
}

async function answer(connection: Deno.UnixConn, status: () => Promise<ServerStatus | undefined>): Promise<void> {
  const known = await status().catch((error) => {
    connection.close();
    throw error;
  });
  const text: ControlAnswer = { pid: Deno.pid, ...known && { status: known } };
  await new Blob([JSON.stringify(text)]).stream().pipeTo(connection.writable);
}

async function connect(path: string): Promise<Deno.UnixConn | undefined> {
  try {
    return await Deno.connect({ transport: "unix", path });
  } catch {
    return undefined;
  }
}

// The first that can be used is used; a `list` of another session may know fewer.
function folders(): readonly string[] {
  const runtimeDir = Deno.env.get("XDG_RUNTIME_DIR");
  const temporary = `${Deno.env.get("TMPDIR") || "/tmp"}/tensorlet-${Deno.uid()}`;
  return runtimeDir ? [`${runtimeDir}/tensorlet`, temporary] : [temporary];
}

function makeOwn(folder: string): boolean {
  try {
    Deno.mkdirSync(folder, { mode: 0o700 });
  } catch {
    // It is there, or will not do.
  }
  return isOwn(folder);
}

// One that somebody else made, or may write to, could hold somebody else's sockets.
function isOwn(folder: string): boolean {
  try {
    const { isDirectory, uid, mode } = Deno.lstatSync(folder);
    return isDirectory && uid === Deno.uid() && (mode! & 0o077) === 0;
  } catch {
    return false;
  }
}

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch {
    // It is not.
  }
}
