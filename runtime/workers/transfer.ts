// Which tensors' bytes move to the other thread instead of being copied twice.
import type { AnyTensor, NamedTensors } from "../core/tensor.ts";
import type { CallData, FromInstance, ToInstance } from "./messages.ts";

/** Below it, copying is faster than handing the buffer over. */
const MIN_TRANSFER_BYTES = 16 * 1024;

/** The buffers of a call's input. The runtime made them of the request, so nobody else needs them. */
export function inputBuffers(message: ToInstance): ArrayBuffer[] {
  if (message.type !== "call") return [];
  const buffers = new Set<ArrayBuffer>();
  for (const input of inputsOf(message.call)) {
    for (const { data } of Object.values(input)) {
      if (isLarge(data) && data.byteLength * 2 >= data.buffer.byteLength) buffers.add(data.buffer);
    }
  }
  return [...buffers];
}

/** `message` with copies of its large tensors, whose buffers may be handed over: the function may go on using its own. */
export function withOwnBuffers(message: FromInstance): readonly [FromInstance, ArrayBuffer[]] {
  if (message.type !== "reply" || message.reply.type !== "tensors") return [message, []];
  const buffers: ArrayBuffer[] = [];
  const output: Record<string, AnyTensor> = {};
  for (const [name, tensor] of Object.entries(message.reply.output)) {
    if (isLarge(tensor.data)) {
      const data = copyOf(tensor.data);
      buffers.push(data.buffer);
      output[name] = { ...tensor, data } as AnyTensor;
    } else {
      output[name] = isWasteful(tensor.data) ? { ...tensor, data: tensor.data.slice() } as AnyTensor : tensor;
    }
  }
  return [{ ...message, reply: { ...message.reply, output } }, buffers];
}

/** Answers up to this size find memory ready. */
const MAX_SPARE_BYTES = 8 * 1024 * 1024;
const PAGE_BYTES = 4096;

let spare: ArrayBuffer | undefined;

// Fresh memory costs a page fault for every 4 KB, which is several times the copy itself. So the next copy's is touched
// once this one is on its way, while the other thread works on it.
function copyOf(data: Large & Bytes): Large {
  const { byteLength } = data;
  const buffer = spare?.byteLength === byteLength ? spare : new ArrayBuffer(byteLength);
  spare = undefined;
  const copy = new (data.constructor as Uint8ArrayConstructor)(buffer);
  copy.set(data);
  if (byteLength <= MAX_SPARE_BYTES) queueMicrotask(() => makeSpare(byteLength));
  return copy;
}

function makeSpare(byteLength: number): void {
  if (spare?.byteLength === byteLength) return;
  spare = new ArrayBuffer(byteLength);
  const bytes = new Uint8Array(spare);
  for (let i = 0; i < byteLength; i += PAGE_BYTES) bytes[i] = 0;
}

type Bytes = Exclude<AnyTensor["data"], readonly unknown[]>;
type Large = Uint8Array<ArrayBuffer>;

function isLarge(data: AnyTensor["data"]): data is Large & Bytes {
  return ArrayBuffer.isView(data) && data.byteLength >= MIN_TRANSFER_BYTES && data.buffer instanceof ArrayBuffer;
}

// A view is copied with the whole of its buffer.
function isWasteful(data: AnyTensor["data"]): data is Large & Bytes {
  return ArrayBuffer.isView(data) && data.buffer.byteLength > 2 * data.byteLength + 1024;
}

function inputsOf(call: CallData): readonly NamedTensors[] {
  if (call.kind === "batch") return call.items.map(({ input }) => input);
  return call.kind === "chat" ? [] : [call.input];
}
