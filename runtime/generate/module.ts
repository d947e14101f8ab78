// A typed client of one function as a module of TypeScript, on top of `tensorlet/client`.
import type { CallKind } from "../core/call.ts";
import type { NamedSpec, ParamSpecs } from "../core/spec.ts";
import { commentText, docComment, pascalCase, sentence } from "./text.ts";
import { describeTensor, inputType, isSingle, outputType, paramsLiteral, paramsType, specsLiteral } from "./types.ts";

/** What is known of a function. */
export interface FunctionSignature {
  readonly name: string;
  readonly version: string;
  readonly description?: string | undefined;
  /** Undefined = any tensors. */
  readonly input?: readonly NamedSpec[] | undefined;
  /** Undefined = any tensors. */
  readonly output?: readonly NamedSpec[] | undefined;
  /** Undefined = any params. */
  readonly params?: ParamSpecs | undefined;
  /** What it can answer. */
  readonly kinds: readonly CallKind[];
}

/** The module's text, still to be formatted; `model` is what its client asks for, `address` the default server. */
export function generateModule(signature: FunctionSignature, model: string, address: string): string {
  const { name, version, description } = signature;
  const prefix = pascalCase(name);
  return [
    "/**",
    ` * Calls the function \`${name}\`, version ${version}.`,
    ...description ? [" *", ` * ${commentText(sentence(description)!.replaceAll(/\s+/g, " "))}`] : [],
    " *",
    ` * Written by Tensorlet's \`generate ${model}\`: have it written anew when the function changes.`,
    " *",
    " * @module",
    " */",
    'import * as tensorlet from "tensorlet/client";',
    "",
    ...declarations(signature, prefix),
    ...clientClass(signature, prefix, model, address),
    "",
  ].join("\n");
}

function declarations({ input, output, params, kinds }: FunctionSignature, prefix: string): readonly string[] {
  const predicts = kinds.includes("predict");
  const parts: string[] = [];
  if (predicts && input && input.length > 0) {
    parts.push(declareType(`${prefix}Input`, inputType(input), describeIo("What the function takes", input)));
  }
  if (predicts && output) {
    parts.push(
      declareType(`${prefix}Output`, outputType(output), describeIo("What the function gives", output)),
      declareType(
        `${prefix}Prediction`,
        `Omit<tensorlet.Prediction, "output"> & {\n${
          docComment("The answer's tensors.")
        }readonly output: ${prefix}Output;\n}`,
        "An answer to `predict`.",
      ),
    );
  }
  if (params) {
    parts.push(
      declareType(`${prefix}Params`, paramsType(params), "The function's parameters."),
      `/** The options of a call, with the function's parameters. */
export type ${prefix}Options<Options> = Omit<Options, "params"> & {
  /** The function's parameters. */
  readonly params?: ${prefix}Params;
};
`,
    );
  }
  const literal = [
    ...input ? [`input: ${specsLiteral(input)}`] : [],
    ...output ? [`output: ${specsLiteral(output)}`] : [],
    ...params ? [`params: ${paramsLiteral(params)}`] : [],
  ];
  return [...parts, `const DECLARATION = tensorlet.declareModel({ ${literal.join(", ")} });\n`];
}

// An interface where it is an object: editors show its name and the comments of its properties.
function declareType(name: string, type: string, comment: string): string {
  const declaration = type.startsWith("{") ? `export interface ${name} ${type}` : `export type ${name} = ${type};`;
  return `${docComment(comment)}${declaration}\n`;
}

function describeIo(what: string, specs: readonly NamedSpec[]): string {
  if (!isSingle(specs)) return `${what}.`;
  const [spec] = specs;
  return `${what}: ${sentence(spec!.description) ?? ""} ${describeTensor(spec!)}`;
}

function clientClass(
  signature: FunctionSignature,
  prefix: string,
  model: string,
  address: string,
): readonly string[] {
  return [
    `/** Calls \`${model}\` of one server; connects at the first call. Disposing it closes its connection. */`,
    `export class ${prefix}Client implements AsyncDisposable {`,
    "readonly #client: tensorlet.Client<typeof DECLARATION>;",
    "",
    '/** `address` is "host:port". Throws `RangeError` for options that cannot be meant. */',
    `constructor(address: string = ${
      JSON.stringify(address)
    }, options: Omit<tensorlet.BaseClientOptions, "model"> = {}) {`,
    `this.#client = tensorlet.createClient(address, {`,
    `...options, model: ${JSON.stringify(model)}, definition: DECLARATION,`,
    "});",
    "}",
    "",
    ...methods(signature, prefix),
    "/** Closes the connection; calls in progress fail. */",
    "close(): void {",
    "this.#client.close();",
    "}",
    "",
    "/** Closes the connection, where the client is left. */",
    "async [Symbol.asyncDispose](): Promise<void> {",
    "await this.#client[Symbol.asyncDispose]();",
    "}",
    "}",
  ];
}

function methods(signature: FunctionSignature, prefix: string): readonly string[] {
  const { input, output, params, kinds } = signature;
  const needsInput = input?.some(({ optional }) => !optional) ?? true;
  const options = (name: string) => {
    const type = `tensorlet.${name}`;
    return `options: ${params ? `${prefix}Options<${type}>` : `${type}<typeof DECLARATION>`} = {}`;
  };
  const method = (name: string, comment: string, parameters: readonly string[], args: string, type: string) =>
    `${docComment(comment)}${name}(${parameters.join(", ")}): ${type} {\nreturn this.#client.${name}(${args});\n}\n`;
  const parts: string[] = [];
  if (kinds.includes("predict")) {
    const type = input ? `${prefix}Input` : "tensorlet.AnyTensor | readonly tensorlet.AnyTensor[]";
    const takes = input?.length === 0 ? [] : [`input: ${type}${needsInput ? "" : " = {}"}`];
    const gives = output ? `${prefix}Prediction` : "tensorlet.Prediction<typeof DECLARATION>";
    const args = takes.length > 0 ? "input, options" : "{}, options";
    const comment = "One request, one answer.";
    parts.push(method("predict", comment, [...takes, options("CallOptions")], args, `Promise<${gives}>`));
  }
  const flat = flatInput(input);
  if (kinds.includes("stream") && flat !== undefined) {
    const takes = input?.length === 0 ? [] : [`input: tensorlet.StreamInput${input && !needsInput ? " = []" : ""}`];
    const args = takes.length > 0 ? "input, options" : "[], options";
    const comment = `Tokens as the function makes them; leaving the loop ends the call. ${flat}`;
    parts.push(method("stream", comment, [...takes, options("StreamOptions")], args, "tensorlet.TokenStream"));
  }
  if (kinds.includes("batch") && flat && isNumeric(output)) {
    const takes = ["vectors: Iterable<tensorlet.BatchVector> | AsyncIterable<tensorlet.BatchVector>"];
    const comment = `Many vectors in one call, an answer each. ${flat}`;
    const parameters = [...takes, options("BatchOptions")];
    parts.push(method("batch", comment, parameters, "vectors, options", "Promise<tensorlet.BatchAnswers>"));
  }
  if (kinds.includes("chat")) {
    const comment = "A conversation, kept alive by heartbeats.";
    parts.push(method("chat", comment, [options("ChatOptions")], "options", "tensorlet.Chat"));
  }
  return parts;
}

// Streams and batches carry one flat float32 tensor; undefined = not what the function takes, "" = it takes none.
function flatInput(input: readonly NamedSpec[] | undefined): string | undefined {
  if (input?.length === 0) return "";
  const [first, ...others] = input ?? [];
  if (first === undefined) return "The values are sent as float32.";
  if (!["float32", "any"].includes(first.dtype) || others.some(({ optional }) => !optional)) return undefined;
  return first.shape
    ? `The values fill the shape [${first.shape.join(", ")}]${first.shape.includes(-1) ? " (-1 = any)" : ""}.`
    : "The values are sent as float32.";
}

// The answers of a batch are float32.
function isNumeric(output: readonly NamedSpec[] | undefined): boolean {
  return output?.[0] === undefined || !["string", "bytes"].includes(output[0].dtype);
}
