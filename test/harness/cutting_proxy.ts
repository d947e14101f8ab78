// A TCP proxy in front of a server that cuts connections where a test says so.

/** Where one connection is cut; without either it is not. */
export interface Cut {
  /** After that many messages of the server, on whatever stream. */
  readonly afterMessages?: number;
  /** After that many bytes of the server. */
  readonly afterBytes?: number;
}

/** The options of {@linkcode startProxy}. */
export interface ProxyOptions {
  /** "host:port" of the server. */
  readonly target: string;
  /** Of the connection of this number, from 0. @default never cut */
  readonly cut?: (connection: number) => Cut;
}

/** A proxy that listens. */
export interface Proxy extends AsyncDisposable {
  readonly address: string;
  /** Connections so far. */
  readonly connections: number;
  /** Connections that are open. */
  readonly open: number;
  /** Cuts the connections that are open. */
  cutAll(): void;
}

/** Starts a proxy on a free port. */
export function startProxy({ target, cut = () => ({}) }: ProxyOptions): Proxy {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const [hostname, port] = target.split(":") as [string, string];
  const open = new Set<() => void>();
  const running: Promise<unknown>[] = [];
  let connections = 0;

  const serve = async (client: Deno.Conn) => {
    const limit = cut(connections++);
    const server = await Deno.connect({ hostname, port: Number(port) });
    const end = () => {
      if (!open.delete(end)) return;
      client.close();
      server.close();
    };
    open.add(end);
    await Promise.all([
      pump(client, server).catch(() => {}).finally(end),
      pump(server, client, limit).catch(() => {}).finally(end),
    ]);
  };
  running.push((async () => {
    for await (const client of listener) running.push(serve(client));
  })());
  return {
    address: `127.0.0.1:${(listener.addr as Deno.NetAddr).port}`,
    get connections() {
      return connections;
    },
    get open() {
      return open.size;
    },
    cutAll: () => open.forEach((end) => end()),
    async [Symbol.asyncDispose]() {
      listener.close();
      open.forEach((end) => end());
      while (running.length > 0) await running.pop();
    },
  };
}

async function pump(from: Deno.Conn, to: Deno.Conn, cut: Cut = {}): Promise<void> {
  const { afterMessages = Infinity, afterBytes = Infinity } = cut;
  const messages = new MessageCounter();
  let bytes = 0;
  const buffer = new Uint8Array(64 * 1024);
  for (;;) {
    const count = await from.read(buffer);
    if (count === null) return;
    let end = 0;
    while (end < count && bytes < afterBytes && messages.count < afterMessages) {
      messages.read(buffer[end]!);
      bytes++;
      end++;
    }
    await writeAll(to, buffer.subarray(0, end));
    if (bytes >= afterBytes || messages.count >= afterMessages) return;
  }
}

/** Counts gRPC messages in the DATA frames of a connection, byte by byte; one stream at a time. */
class MessageCounter {
  #frame: number[] = [];
  #payloadLeft = 0;
  #prefix: number[] = [];
  #messageLeft = 0;
  /** Messages that are complete. */
  count = 0;

  read(byte: number): void {
    if (this.#payloadLeft === 0) {
      this.#frame.push(byte);
      if (this.#frame.length < 9) return;
      this.#payloadLeft = (this.#frame[0]! << 16) | (this.#frame[1]! << 8) | this.#frame[2]!;
      if (this.#payloadLeft === 0) this.#frame = [];
      return;
    }
    const isData = this.#frame[3] === 0;
    if (--this.#payloadLeft === 0) this.#frame = [];
    if (isData) this.#readData(byte);
  }

  #readData(byte: number): void {
    if (this.#messageLeft > 0) {
      this.#messageLeft--;
    } else {
      this.#prefix.push(byte);
      if (this.#prefix.length < 5) return;
      this.#messageLeft = new DataView(Uint8Array.from(this.#prefix).buffer).getUint32(1);
    }
    if (this.#messageLeft > 0) return;
    this.#prefix = [];
    this.count++;
  }
}

async function writeAll(to: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await to.write(bytes.subarray(at));
}
