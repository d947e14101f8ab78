// Prints the public API as `deno doc` sees it: names, kinds and signatures, without the comments.
//   deno task api            prints it
//   deno task api --update   writes it to .ci/api_surface.txt, which `deno task check` compares it with

const ROOT = new URL("../", import.meta.url);
const GOLDEN = new URL("./api_surface.txt", import.meta.url);

/** The entries of deno.json's `exports`, as a user imports them. */
const ENTRIES: Readonly<Record<string, string>> = {
  "tensorlet": "mod.ts",
  "tensorlet/client": "runtime/client.ts",
  "tensorlet/testing": "runtime/testing.ts",
};

// The parts of `deno doc --json` that are read here (version 2 of its format).
interface Doc {
  readonly version: number;
  readonly nodes: Readonly<Record<string, { readonly symbols: readonly DocSymbol[] }>>;
}
interface DocSymbol {
  readonly name: string;
  readonly declarations: readonly Declaration[];
}
interface Declaration {
  readonly kind: string;
  readonly declarationKind: string;
  readonly def?: Definition;
}
interface Definition extends Members {
  readonly extends?: string | readonly Type[];
  readonly implements?: readonly Type[];
  readonly superTypeParams?: readonly Type[];
  readonly isAbstract?: boolean;
  readonly constructors?: readonly { readonly params: readonly Param[] }[];
  readonly tsType?: Type;
  readonly kind?: string;
  readonly params?: readonly Param[];
  readonly typeParams?: readonly TypeParam[];
  readonly returnType?: Type;
}
interface Members {
  readonly properties?: readonly Property[];
  readonly methods?: readonly Method[];
  readonly callSignatures?: readonly Signature[];
  readonly indexSignatures?: readonly (Signature & { readonly readonly?: boolean; readonly tsType?: Type })[];
}
interface Property {
  readonly name: string;
  readonly readonly?: boolean;
  readonly optional?: boolean;
  readonly isStatic?: boolean;
  readonly isAbstract?: boolean;
  readonly accessibility?: string;
  readonly tsType?: Type;
}
interface Method extends Partial<Signature> {
  readonly name: string;
  readonly kind: string;
  readonly optional?: boolean;
  readonly isStatic?: boolean;
  readonly isAbstract?: boolean;
  readonly accessibility?: string;
  readonly functionDef?: Signature;
}
interface Signature {
  readonly params: readonly Param[];
  readonly typeParams?: readonly TypeParam[];
  readonly returnType?: Type;
  readonly tsType?: Type;
}
interface Param {
  readonly kind: string;
  readonly name?: string;
  readonly optional?: boolean;
  readonly left?: Param;
  readonly arg?: Param;
  readonly tsType?: Type;
}
interface TypeParam {
  readonly name: string;
  readonly constraint?: Type;
  readonly default?: Type;
}
interface Type {
  readonly kind: string;
  readonly repr?: string;
  // deno-lint-ignore no-explicit-any -- its form depends on `kind`
  readonly value: any;
}

/** The text of the golden file. */
export async function apiSurface(): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["doc", "--json", ...Object.values(ENTRIES)],
    cwd: ROOT,
  }).output();
  if (!success) throw new Error(`Cannot read the API: ${new TextDecoder().decode(stderr)}`);
  return printDoc(JSON.parse(new TextDecoder().decode(stdout)), (path) => new URL(path, ROOT).href);
}

/** The golden file as it is. */
export async function golden(): Promise<string> {
  return await Deno.readTextFile(GOLDEN);
}

/** Prints what `deno doc --json` gave. Throws on a construct that it does not know, so that none goes unseen. */
export function printDoc(doc: Doc, urlOf: (path: string) => string): string {
  if (doc.version !== 2) throw new Error(`Cannot read version ${doc.version} of deno doc's format`);
  const entries = Object.entries(ENTRIES).map(([entry, path]) => {
    const { symbols } = doc.nodes[urlOf(path)]!;
    const lines = symbols
      .toSorted((a, b) => a.name < b.name ? -1 : 1)
      .flatMap(({ name, declarations }) => declarations.flatMap((declaration) => printDeclaration(name, declaration)));
    return [`# ${entry}`, ...lines].join("\n\n");
  });
  return `${entries.join("\n\n")}\n`;
}

function printDeclaration(name: string, { kind, declarationKind, def = {} }: Declaration): string[] {
  if (declarationKind === "private") return [];
  const params = typeParams(def.typeParams);
  switch (kind) {
    case "reference":
      return [`re-export ${name}`];
    case "function":
      return [`function ${name}${signature(def as Signature)}`];
    case "variable":
      return [`${def.kind} ${name}: ${type(def.tsType)}`];
    case "typeAlias":
      return [`type ${name}${params} = ${type(def.tsType)}`];
    case "interface": {
      const parents = list((def.extends ?? []) as readonly Type[], " extends ");
      return [block(`interface ${name}${params}${parents}`, members(def))];
    }
    case "class": {
      const parent = def.extends ? ` extends ${def.extends}${angle((def.superTypeParams ?? []).map(type))}` : "";
      const head = `${def.isAbstract ? "abstract " : ""}class ${name}${params}${parent}`;
      const constructors = (def.constructors ?? []).map((each) => `constructor${signature(each)}`);
      return [block(head + list(def.implements ?? [], " implements "), [...constructors, ...members(def)])];
    }
    default:
      throw new Error(`Cannot print a ${kind}: ${name}`);
  }
}

function block(head: string, lines: readonly string[]): string {
  return [head, ...lines.map((line) => `  ${line}`)].join("\n");
}

function list(types: readonly Type[], word: string): string {
  return types.length > 0 ? word + types.map(type).join(", ") : "";
}

function angle(parts: readonly string[]): string {
  return parts.length > 0 ? `<${parts.join(", ")}>` : "";
}

function members(def: Members): string[] {
  const isPublic = ({ name, accessibility }: Property | Method) => accessibility !== "private" && !name.startsWith("#");
  return [
    ...(def.callSignatures ?? []).map((each) => signature(each)),
    ...(def.indexSignatures ?? []).map((each) =>
      `${each.readonly ? "readonly " : ""}[${each.params.map(param).join(", ")}]: ${type(each.tsType)}`
    ),
    ...(def.properties ?? []).filter(isPublic).map((each) =>
      `${modifiers(each)}${each.readonly ? "readonly " : ""}${each.name}${each.optional ? "?" : ""}: ${
        type(each.tsType)
      }`
    ),
    ...(def.methods ?? []).filter(isPublic).map((each) => {
      const accessor = each.kind === "getter" ? "get " : each.kind === "setter" ? "set " : "";
      const parts = each.functionDef ?? (each as Signature);
      return `${modifiers(each)}${accessor}${each.name}${each.optional ? "?" : ""}${signature(parts)}`;
    }),
  ];
}

function modifiers({ accessibility, isStatic, isAbstract }: Property | Method): string {
  const words = [accessibility === "protected" && "protected", isStatic && "static", isAbstract && "abstract"];
  return words.map((word) => word ? `${word} ` : "").join("");
}

function signature({ params, typeParams: generics, returnType, tsType }: Signature, arrow = ": "): string {
  const result = returnType ?? tsType;
  return `${typeParams(generics)}(${params.map(param).join(", ")})${result ? arrow + type(result) : ""}`;
}

function typeParams(params: readonly TypeParam[] = []): string {
  return angle(params.map(typeParam));
}

function typeParam({ name, constraint, default: fallback }: TypeParam): string {
  return `${name}${constraint ? ` extends ${type(constraint)}` : ""}${fallback ? ` = ${type(fallback)}` : ""}`;
}

function param(each: Param): string {
  switch (each.kind) {
    case "identifier":
      return `${each.name}${each.optional ? "?" : ""}${each.tsType ? `: ${type(each.tsType)}` : ""}`;
    case "assign":
      return param({ ...each.left!, optional: true });
    case "rest":
      return `...${param({ ...each.arg!, ...each.tsType && { tsType: each.tsType } })}`;
    case "array":
    case "object":
      return `${each.kind === "array" ? "[]" : "{}"}${each.optional ? "?" : ""}: ${type(each.tsType)}`;
    default:
      throw new Error(`Cannot print a parameter of kind ${each.kind}`);
  }
}

function type(of: Type | undefined): string {
  if (of === undefined) return "(inferred)";
  const { kind, value } = of;
  switch (kind) {
    case "keyword":
      return value;
    case "this":
      return "this";
    case "literal":
      return value.kind === "string" ? JSON.stringify(value.string) : of.repr ?? String(value[value.kind]);
    case "typeRef":
      return value.typeName + angle((value.typeParams ?? []).map(type));
    case "typeQuery":
      return `typeof ${of.repr}`;
    case "importType":
      return `import(${JSON.stringify(value.specifier)}).${value.qualifier ?? "*"}`;
    case "union":
      return value.map(type).join(" | ");
    case "intersection":
      return value.map(type).join(" & ");
    case "array":
      return `${type(value)}[]`;
    case "tuple":
      return `[${value.map(type).join(", ")}]`;
    case "rest":
      return `...${type(value)}`;
    case "optional":
      return `${type(value)}?`;
    case "parenthesized":
      return `(${type(value)})`;
    case "typeOperator":
      return `${value.operator} ${type(value.tsType)}`;
    case "indexedAccess":
      return `${type(value.objType)}[${type(value.indexType)}]`;
    case "infer":
      return `infer ${typeParam(value.typeParam)}`;
    case "conditional":
      return `${type(value.checkType)} extends ${type(value.extendsType)} ? ${type(value.trueType)} : ${
        type(value.falseType)
      }`;
    case "fnOrConstructor":
      return (value.constructor === true ? "new " : "") + signature(value, " => ");
    case "typePredicate": {
      const subject = value.param.type === "this" ? "this" : value.param.name;
      return `${value.asserts ? "asserts " : ""}${subject}${value.type ? ` is ${type(value.type)}` : ""}`;
    }
    case "mapped": {
      const name = `${value.typeParam.name} in ${type(value.typeParam.constraint)}`;
      const as = value.nameType ? ` as ${type(value.nameType)}` : "";
      return `{ ${sign(value.readonly, "readonly ")}[${name}${as}]${sign(value.optional, "?")}: ${
        type(value.tsType)
      } }`;
    }
    case "typeLiteral": {
      const parts = members(value);
      return parts.length > 0 ? `{ ${parts.join("; ")} }` : "{}";
    }
    default:
      throw new Error(`Cannot print a type of kind ${kind}`);
  }
}

// A mapped type's modifier: true, "+" or "-".
function sign(modifier: true | "+" | "-" | undefined, text: string): string {
  return modifier === undefined ? "" : modifier === true ? text : modifier + text;
}

if (import.meta.main) {
  const surface = await apiSurface();
  if (Deno.args.includes("--update")) {
    await Deno.writeTextFile(GOLDEN, surface);
  } else if (Deno.args.includes("--check")) {
    const isSame = surface === await golden().catch(() => "");
    console.log(isSame ? "api: as in .ci/api_surface.txt" : "api: differs from .ci/api_surface.txt");
    if (!isSame) console.error("If the change is meant: deno task api --update, and commit the file");
    Deno.exit(isSame ? 0 : 1);
  } else {
    console.log(surface.trimEnd());
  }
}
