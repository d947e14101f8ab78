// What the protocols have in common, so that the contract's cases are written once: test/contract/protocols_test.ts.
import type { ErrorCode } from "tensorlet";
import type { TestServer } from "tensorlet/testing";

/** One call: a function is to add up numbers. */
export interface Ask {
  /** `name` or `name@version`. */
  readonly model: string;
  /** As a tensor `x` of one dim, or as a text with spaces between. @default {[1, 2]} */
  readonly numbers?: readonly number[];
  /** The tensor's. @default {"float32"} */
  readonly dtype?: "float32" | "int32";
  readonly params?: Readonly<Record<string, string | number>>;
  /** The most pieces of an answer. @default {Infinity} */
  readonly maxTokens?: number;
  /** @default one that the server makes */
  readonly requestId?: string;
  /** Aborts when the client leaves. */
  readonly signal?: AbortSignal;
  /** Until the client's deadline. @default {Infinity} */
  readonly timeoutMs?: number;
}

/** How a call ended. */
export interface Answer {
  /** gRPC's code or HTTP's status; undefined for a failure after HTTP's status has been sent. */
  readonly code: "ok" | ErrorCode | number | undefined;
  /** What the client is told of a failure. */
  readonly message: string;
  /** The answer, or what came of it: numbers as decimals. */
  readonly text: string;
  /** The request's id; undefined where answers have none in memory, null where it is missing. */
  readonly requestId?: string | null;
}

/** The numbers of an ask as a text. */
export function textOf({ numbers = [1, 2] }: Ask): string {
  return numbers.join(" ");
}

/** The numbers of an ask, and what they are as a tensor. */
export function tensorOf({ numbers = [1, 2], dtype = "float32" }: Ask) {
  const bytes = new Uint8Array((dtype === "int32" ? Int32Array : Float32Array).from(numbers).buffer);
  return { numbers, dtype, shape: [numbers.length], datatype: dtype === "int32" ? "INT32" : "FP32", bytes };
}

/** The parts of a model's name; the version "" where it has none. */
export function versionOf({ model }: Ask): readonly [name: string, version: string] {
  const [name = "", version = ""] = model.split("@");
  return [name, version];
}

/** The cases that not every protocol fits. */
export type CaseName =
  | "a wrong dtype"
  | "a wrong shape"
  | "an undeclared param"
  | "no such handler"
  | "a failure after the first piece"
  | "max_tokens"
  | "the client's deadline"
  | "the server's bound of a call";

/** One way to call a function. */
export interface Protocol {
  readonly name: string;
  /** The handler that answers. */
  readonly kind: "predict" | "stream" | "batch" | "chat";
  ask(server: TestServer, ask: Ask): Promise<Answer>;
  /** Cases that it does not fit, and why. */
  readonly unfit: Readonly<Partial<Record<CaseName, string>>>;
  /** Codes for which it has another one, and why that is so. */
  readonly instead?: Readonly<Partial<Record<ErrorCode, readonly [number, why: string]>>>;
}
