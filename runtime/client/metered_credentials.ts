// Plain-text credentials that tell what a connection has sent. Deno's http2 calls a write's callback, and shows room,
// whatever the server's flow control window: only the frames on the socket say what has left.
import { CallCredentials, ChannelCredentials } from "@grpc/grpc-js";
import { FRAME, FrameReader } from "../transports/grpc/frames.ts";

/** Told of the bytes of each DATA frame. */
export type OnDataSent = (bytes: number) => void;

type SecureConnector = ReturnType<ChannelCredentials["_createSecureConnector"]>;
type Socket = Parameters<SecureConnector["connect"]>[0];

// "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
const PREFACE_BYTES = 24;

/** Credentials for a connection with a single call: DATA frames are not told apart. */
export function createMeteredCredentials(onDataSent: OnDataSent): ChannelCredentials {
  return new MeteredCredentials(onDataSent);
}

class MeteredCredentials extends ChannelCredentials {
  readonly #onDataSent: OnDataSent;

  constructor(onDataSent: OnDataSent) {
    super();
    this.#onDataSent = onDataSent;
  }

  override compose(): ChannelCredentials {
    return this;
  }

  override _isSecure(): boolean {
    return false;
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(): SecureConnector {
    return {
      connect: (socket) => {
        observe(socket, this.#onDataSent);
        return Promise.resolve({ socket, secure: false });
      },
      waitForReady: () => Promise.resolve(),
      getCallCredentials: () => CallCredentials.createEmpty(),
      destroy() {},
    };
  }
}

function observe(socket: Socket, onDataSent: OnDataSent): void {
  const reader = new FrameReader((type, _streamId, length) => {
    if (type === FRAME.data) onDataSent(length);
  }, PREFACE_BYTES);
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  socket.write = (...args: unknown[]) => {
    if (args[0] instanceof Uint8Array) reader.read(args[0]);
    return write(...args);
  };
}
