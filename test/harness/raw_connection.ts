// A gRPC call on a bare TCP connection whose client then does nothing: it reads nothing, and answers no ping.
const PREFACE = new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const FRAME = { data: 0, headers: 1, settings: 4, windowUpdate: 8 } as const;
const END_STREAM = 1, END_HEADERS = 4;
const LARGEST_WINDOW = 2 ** 31 - 1;
const FIRST_WINDOW = 65_535;

function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(9 + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, payload.length << 8 | type);
  view.setUint8(4, flags);
  view.setUint32(5, streamId);
  bytes.set(payload, 9);
  return bytes;
}

// HPACK without a table, without compression.
function headerBlock(headers: Readonly<Record<string, string>>): Uint8Array {
  const text = (value: string) => [value.length, ...new TextEncoder().encode(value)];
  return new Uint8Array(Object.entries(headers).flatMap(([name, value]) => [0, ...text(name), ...text(value)]));
}

function numbers(...values: readonly (readonly [bits: 16 | 32, value: number])[]): Uint8Array {
  return new Uint8Array(
    values.flatMap(([bits, value]) => [24, 16, 8, 0].filter((shift) => shift < bits).map((shift) => value >>> shift)),
  );
}

/** Connects, and sends a framed message as the whole request; HTTP/2's windows are as large as they can be. */
export async function callAndSayNoMore(address: string, path: string, message: Uint8Array): Promise<Deno.TcpConn> {
  const [hostname, port] = address.split(":");
  const conn = await Deno.connect({ hostname: hostname!, port: Number(port) });
  const headers = {
    ":method": "POST",
    ":scheme": "http",
    ":path": path,
    ":authority": address,
    "content-type": "application/grpc",
    te: "trailers",
  };
  const sent = [
    PREFACE,
    frame(FRAME.settings, 0, 0, numbers([16, 4], [32, LARGEST_WINDOW])),
    frame(FRAME.windowUpdate, 0, 0, numbers([32, LARGEST_WINDOW - FIRST_WINDOW])),
    frame(FRAME.headers, END_HEADERS, 1, headerBlock(headers)),
    frame(FRAME.data, END_STREAM, 1, message),
  ];
  await conn.write(new Uint8Array(sent.flatMap((bytes) => [...bytes])));
  return conn;
}
