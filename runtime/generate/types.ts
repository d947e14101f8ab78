// Declared tensors and params as types of TypeScript, and as the literals that declare them again.
import { ARRAY_TYPES, type DType, isFixed } from "../core/dtype.ts";
import type { NamedSpec, ParamSpec, ParamSpecs, TensorSpec } from "../core/spec.ts";
import { docComment, propertyName, sentence } from "./text.ts";

/** Whether the specs are one tensor without a name. */
export function isSingle(specs: readonly NamedSpec[]): boolean {
  return specs.length === 1 && specs[0]!.name === "0";
}

/** The type of what a caller sends. */
export function inputType(specs: readonly NamedSpec[]): string {
  return ioType(specs, ({ dtype }) => {
    if (dtype === "any") return "tensorlet.AnyTensor";
    const tensor = `tensorlet.Tensor<${JSON.stringify(dtype)}>`;
    return `${arrayType(dtype)} | ${tensor}`;
  });
}

/** The type of what a caller gets. */
export function outputType(specs: readonly NamedSpec[]): string {
  return ioType(specs, ({ dtype, shape }) => {
    if (dtype === "any") return "tensorlet.AnyTensor";
    const type = JSON.stringify(dtype);
    return `tensorlet.Tensor<${shape ? `${type}, readonly ${JSON.stringify(shape)}` : type}>`;
  });
}

function ioType(specs: readonly NamedSpec[], typeOf: (spec: NamedSpec) => string): string {
  if (isSingle(specs)) return typeOf(specs[0]!);
  return objectType(specs.map((spec) => ({
    name: spec.name,
    isOptional: spec.optional === true,
    type: typeOf(spec),
    comment: docComment(sentence(spec.description), describeTensor(spec)),
  })));
}

/** A declared tensor in words: `float32 of shape [-1, 28, 28] (-1 = any).` */
export function describeTensor({ dtype, shape }: TensorSpec): string {
  const name = dtype === "any" ? "Any dtype" : dtype;
  const size = shape === undefined
    ? "of any shape"
    : `of shape [${shape.join(", ")}]${shape.includes(-1) ? " (-1 = any)" : ""}`;
  const bits = dtype === "bfloat16" ? ", as raw bits" : "";
  return `${name} ${size}${bits}.`;
}

function arrayType(dtype: DType): string {
  if (isFixed(dtype)) return ARRAY_TYPES[dtype].name;
  return dtype === "string" ? "string[]" : "Uint8Array[]";
}

/** The type of the params of a call: all of them may be left out. */
export function paramsType(params: ParamSpecs): string {
  return objectType(
    Object.entries(params).map(([name, spec]) => ({
      name,
      isOptional: true,
      type: paramType(spec),
      comment: docComment(sentence(spec.description), ...describeParam(spec)),
    })),
  );
}

function paramType(spec: ParamSpec): string {
  if (spec.type === "boolean") return "boolean";
  if (spec.type !== "string") return "number";
  if (spec.enum === undefined) return "string";
  return spec.enum.length === 0 ? "never" : spec.enum.map((value) => JSON.stringify(value)).join(" | ");
}

function describeParam(spec: ParamSpec): readonly (string | undefined)[] {
  const { default: byDefault } = spec;
  const defaultTag = byDefault === undefined ? undefined : `@default {${JSON.stringify(byDefault)}}`;
  if (spec.type === "string" || spec.type === "boolean") return [defaultTag];
  const kind = spec.type === "integer" ? "A whole number" : "A number";
  const from = isBound(spec.min) ? ` from ${spec.min}` : "";
  const to = isBound(spec.max) ? `${from === "" ? " up" : ""} to ${spec.max}` : "";
  return [`${kind}${from}${to}.`, defaultTag];
}

// In JSON an infinite bound is null.
function isBound(bound: number | null | undefined): boolean {
  return typeof bound === "number" && Number.isFinite(bound);
}

interface Property {
  readonly name: string;
  readonly isOptional: boolean;
  readonly type: string;
  readonly comment: string;
}

function objectType(properties: readonly Property[]): string {
  if (properties.length === 0) return "Readonly<Record<string, never>>";
  const lines = properties.map(({ name, isOptional, type, comment }) =>
    `${comment}readonly ${propertyName(name)}${isOptional ? "?" : ""}: ${type};\n`
  );
  return `{\n${lines.join("")}}`;
}

/** The specs as the literal that `declareModel` takes. */
export function specsLiteral(specs: readonly NamedSpec[]): string {
  const literalOf = ({ dtype, shape, optional }: NamedSpec) => objectLiteral({ dtype, shape, optional });
  if (isSingle(specs)) return literalOf(specs[0]!);
  return `{ ${specs.map((spec) => `${propertyName(spec.name)}: ${literalOf(spec)}`).join(", ")} }`;
}

/** The params as the literal that `declareModel` takes: their types are all that a client needs. */
export function paramsLiteral(params: ParamSpecs): string {
  const entries = Object.entries(params).map(([name, spec]) => {
    const values = spec.type === "string" ? spec.enum : undefined;
    return `${propertyName(name)}: ${objectLiteral({ type: spec.type, enum: values })}`;
  });
  return `{ ${entries.join(", ")} }`;
}

function objectLiteral(fields: Readonly<Record<string, unknown>>): string {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return `{ ${entries.map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ")} }`;
}
