import { type DataTypeMap, type DType, DTYPES, isDType } from "./dtype.ts";
import type { AnyTensor, Shape, Tensor } from "./tensor.ts";

/** A declared tensor. */
export interface TensorSpec<D extends DType | "any" = DType | "any", S extends Shape = Shape> {
  /** `"any"` gives the handler an `AnyTensor` to narrow on `dtype`. */
  readonly dtype: D;
  /** -1 = any; without it any shape is accepted. */
  readonly shape?: S;
  /** Whether a caller may leave it out. @default {false} */
  readonly optional?: boolean;
  /** One line for listings. */
  readonly description?: string;
}

/** Declared tensors by name, in wire order. */
export interface TensorSpecs {
  /** A declared tensor; the name starts with a letter. */
  readonly [name: string]: TensorSpec;
}

/** One tensor, or several by name. */
export type IoSpec = TensorSpec | TensorSpecs;

/** The declared shape, or any. */
export type ShapeOf<T extends TensorSpec> = T extends { readonly shape: infer S extends Shape } ? S : Shape;
/** The names of tensors that may be left out. */
export type OptionalNames<R extends TensorSpecs> = {
  [K in keyof R]: R[K] extends { readonly optional: true } ? K : never;
}[keyof R];
/** An intersection as one object type, as editors show it. */
export type Flatten<T> = { [K in keyof T]: T[K] };
/** What a handler receives for one declared tensor. */
export type Value<T extends TensorSpec> = T["dtype"] extends DType ? Tensor<T["dtype"], ShapeOf<T>> : AnyTensor;
/** What a handler may return for one declared tensor. */
export type Init<T extends TensorSpec> = T["dtype"] extends DType ? DataTypeMap[T["dtype"]] | Tensor<T["dtype"]>
  : AnyTensor;

/** What a handler receives. */
export type Values<T extends IoSpec> = T extends TensorSpec ? Value<T>
  : T extends TensorSpecs ? Flatten<
      & { readonly [K in Exclude<keyof T, OptionalNames<T>>]: Value<T[K]> }
      & { readonly [K in OptionalNames<T>]?: Value<T[K]> }
    >
  : never;

/** What a handler may return: the bare typed array, or a whole tensor. */
export type Inits<T extends IoSpec> = T extends TensorSpec ? Init<T>
  : T extends TensorSpecs ? Flatten<
      & { readonly [K in Exclude<keyof T, OptionalNames<T>>]: Init<T[K]> }
      & { readonly [K in OptionalNames<T>]?: Init<T[K]> }
    >
  : never;

/** A number that the caller sends as text. */
export interface NumberParam {
  /** A decimal number, or a whole one. */
  readonly type: "number" | "integer";
  /** Used where the caller sends none. */
  readonly default?: number;
  /** The least value that is accepted. */
  readonly min?: number;
  /** The greatest value that is accepted. */
  readonly max?: number;
  /** One line for listings. */
  readonly description?: string;
}

/** A text, or one of `enum`. */
export interface StringParam {
  /** Any text. */
  readonly type: "string";
  /** Used where the caller sends none. */
  readonly default?: string;
  /** The texts that are accepted. @default any */
  readonly enum?: readonly string[];
  /** One line for listings. */
  readonly description?: string;
}

/** `true`, `false`, `1` or `0` on the wire. */
export interface BooleanParam {
  /** Yes or no. */
  readonly type: "boolean";
  /** Used where the caller sends none. */
  readonly default?: boolean;
  /** One line for listings. */
  readonly description?: string;
}

/** A declared parameter of a call. */
export type ParamSpec = NumberParam | StringParam | BooleanParam;

/** Declared parameters by name. */
export interface ParamSpecs {
  /** A declared parameter. */
  readonly [name: string]: ParamSpec;
}

/** A parameter's value. */
export type ParamValue = number | string | boolean;

/** A parameter's type. */
export type ParamType<P extends ParamSpec> = P extends NumberParam ? number
  : P extends { readonly enum: readonly (infer E)[] } ? E
  : P extends StringParam ? string
  : boolean;

/** The parameters a handler receives: a default makes the value certain; without one it may be undefined. */
export type Params<P extends ParamSpecs> = {
  readonly [K in keyof P]: P[K] extends { readonly default: ParamType<P[K]> } ? ParamType<P[K]>
    : ParamType<P[K]> | undefined;
};

/** Parameter names that the runtime reads itself. */
export const RESERVED_PARAMS: readonly string[] = ["shape", "output", "resume_from"];

/** A declared tensor with its name; a single unnamed one is "0". */
export interface NamedSpec extends TensorSpec {
  /** Its name. */
  readonly name: string;
}

/** Whether `spec` declares one tensor rather than several by name. */
export function isSingleSpec(spec: IoSpec): spec is TensorSpec {
  return typeof spec.dtype === "string";
}

/** The declared tensors in wire order. */
export function namedSpecs(spec: IoSpec): readonly NamedSpec[] {
  if (isSingleSpec(spec)) return [{ ...spec, name: "0" }];
  return Object.entries(spec).map(([name, value]) => ({ ...value, name }));
}

/** Throws `TypeError` or `RangeError` where a declared tensor cannot be meant; `label` is "input" or "output". */
export function checkIoSpec(spec: IoSpec, label: string): void {
  for (const { name, dtype, shape } of namedSpecs(spec)) {
    const where = isSingleSpec(spec) ? label : `${label} "${name}"`;
    // JavaScript moves integer-like keys to the front, which would change the wire order.
    if (!isSingleSpec(spec) && !/^[A-Za-z][\w.:/-]*$/.test(name)) {
      throw new RangeError(`Cannot define ${where}: a name starts with a letter`);
    }
    if (dtype !== "any" && !isDType(dtype)) {
      throw new TypeError(
        `Cannot define ${where}: dtype is ${JSON.stringify(dtype)}, wanted "any" or one of ${DTYPES.join(", ")}`,
      );
    }
    if (shape !== undefined && !(Array.isArray(shape) && shape.every((dim) => Number.isInteger(dim) && dim >= -1))) {
      throw new RangeError(
        `Cannot define ${where}: shape is ${JSON.stringify(shape)}, wanted whole numbers from -1 (any)`,
      );
    }
  }
}

/** Throws `TypeError` or `RangeError` where a declared parameter cannot be meant. */
export function checkParamSpecs(specs: ParamSpecs): void {
  for (const [name, spec] of Object.entries(specs)) {
    const where = `param "${name}"`;
    if (RESERVED_PARAMS.includes(name) || name === "__proto__") {
      throw new RangeError(`Cannot define ${where}: the name is reserved (${RESERVED_PARAMS.join(", ")})`);
    }
    if (!["number", "integer", "string", "boolean"].includes(spec.type)) {
      throw new TypeError(
        `Cannot define ${where}: type is ${JSON.stringify(spec.type)}, wanted number, integer, string or boolean`,
      );
    }
    if (spec.default === undefined) continue;
    const type = spec.type === "integer" ? "number" : spec.type;
    const given: string = typeof spec.default;
    if (given !== type) {
      throw new TypeError(`Cannot define ${where}: default is a ${given}, wanted a ${type}`);
    }
    const problem = paramProblem(spec, spec.default);
    if (problem !== undefined) throw new RangeError(`Cannot define ${where}: default is ${spec.default}, ${problem}`);
  }
}

/** What is wrong with a value of the right type, as "wanted ...", or undefined. */
export function paramProblem(spec: ParamSpec, value: ParamValue): string | undefined {
  if (spec.type === "string") {
    const allowed = spec.enum;
    return allowed && !allowed.includes(value as string)
      ? `wanted one of ${allowed.map((v) => JSON.stringify(v)).join(", ")}`
      : undefined;
  }
  if (spec.type === "boolean") return undefined;
  const number = value as number;
  if (!Number.isFinite(number) || (spec.type === "integer" && !Number.isSafeInteger(number))) {
    return spec.type === "integer" ? "wanted a whole number" : "wanted a number";
  }
  if (spec.min !== undefined && number < spec.min) return `wanted at least ${spec.min}`;
  if (spec.max !== undefined && number > spec.max) return `wanted at most ${spec.max}`;
  return undefined;
}

/** A declared tensor as people read it: `float32[-1,28,28]`. */
export function formatSpec(spec: TensorSpec): string {
  return `${spec.dtype}${spec.shape ? `[${spec.shape}]` : ""}${spec.optional ? "?" : ""}`;
}
