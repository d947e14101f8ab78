/**
 * Serve model functions over gRPC: a file in `functions/` calls `defineModel({...})`, and
 * `deno run -A mod.ts` serves it.
 *
 * Functions import this module inside workers without permissions: it reaches the host only by `import()`.
 *
 * @module
 */
export type { ChatMessage } from "./runtime/core/call.ts";
export type {
  BatchContext,
  BatchItem,
  ChatContext,
  Context,
  ContextKey,
  ContextValues,
  LoadContext,
  Session,
  StreamContext,
} from "./runtime/core/context.ts";
export { createContextKey } from "./runtime/core/context.ts";
export type {
  AnyModel,
  BatchingOptions,
  Chunk,
  Emitted,
  InferInput,
  InferOutput,
  Inputs,
  ModelDefinition,
  ModelOptions,
  Outputs,
  ParamsOf,
  SessionEnd,
  SessionOptions,
} from "./runtime/core/define.ts";
export { defineModel } from "./runtime/core/define.ts";
export type { DataTypeMap, DType } from "./runtime/core/dtype.ts";
export type { ErrorCode, ModelErrorOptions } from "./runtime/core/error.ts";
export { ModelError } from "./runtime/core/error.ts";
export type { LogFields, Logger, LogLevel, LogRecord } from "./runtime/core/log.ts";
export type {
  BooleanParam,
  Inits,
  IoSpec,
  NumberParam,
  Params,
  ParamSpec,
  ParamSpecs,
  ParamValue,
  StringParam,
  TensorSpec,
  TensorSpecs,
  Values,
} from "./runtime/core/spec.ts";
export type { AnyTensor, NamedTensors, Shape, Tensor } from "./runtime/core/tensor.ts";
export { mapNumeric, tensor, toFloat32 } from "./runtime/core/tensor.ts";
