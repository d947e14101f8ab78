// What the page's modules share, as types.
import type { FunctionJson, JsonElement, SentTensor } from "../messages.ts";

/** A declared tensor. */
export type Spec = NonNullable<FunctionJson["input"]>[number];

/** A dtype that a tensor can have. */
export type DType = SentTensor["dtype"];

/** An input as it was typed, or a tensor that was made of an image. */
export interface InputValue {
  readonly text: string;
  readonly dtype: DType;
  readonly tensor?: SentTensor | undefined;
}

/** What a form of a function holds. */
export interface Form {
  readonly inputs: Readonly<Record<string, InputValue>>;
  /** As texts; empty = left out. */
  readonly params: Readonly<Record<string, string>>;
  /** Parameters of a function that declares none, in JSON. */
  readonly more: string;
}

/** Changes a form. */
export type SetForm = (change: (form: Form) => Form) => void;

/** A call's body, as the API takes it. */
export interface CallBody {
  readonly inputs: Readonly<Record<string, SentTensor>>;
  readonly params: Readonly<Record<string, unknown>>;
}

/** What a function's page has tabs for. */
export type Kind = "predict" | "stream" | "chat";

/** What a call can be written in. */
export type Language = "python" | "typescript" | "curl" | "grpcurl";

/** What a snippet is about. */
export interface Subject {
  readonly fn: FunctionJson;
  readonly body: CallBody;
  /** The server's origin. */
  readonly http: string;
  /** Its `host:port`. */
  readonly grpc: string;
}

/** Writes calls in one language. */
export type Writer = Readonly<Record<Kind, (subject: Subject) => string>>;

/** A tensor as a snippet has it. */
export interface Value {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly count: number;
  /** Undefined = zeros. */
  readonly elements?: readonly JsonElement[] | undefined;
}
