// Rules of this project that need the syntax tree; `deno lint` runs them.

const PROJECT = decodeURIComponent(new URL("../", import.meta.url).pathname);

// Only what the language and the web platform share with every runtime, and nothing that reaches out.
const NOT_IN_CORE = [
  "Deno",
  "console",
  "process",
  "Buffer",
  "global",
  "setImmediate",
  "fetch",
  "Worker",
  "WebSocket",
  "EventSource",
  "localStorage",
  "sessionStorage",
  "caches",
  "navigator",
];

/** The places whose files export by default: functions, and what tests and examples serve like functions. */
const DEFAULT_EXPORTS = [
  /^functions\//,
  /^runtime\/host\/template\/functions\//,
  /^examples\/[^/]+\/model\.ts$/,
  /^test\/((e2e|console)\/)?testdata\//,
];

/** The places that import by a computed name: what imports functions, and tests. */
const COMPUTED_IMPORTS = [
  /^runtime\/host\/loader\.ts$/,
  /^runtime\/workers\/function_file\.ts$/,
  /^test\//,
  /_test\.ts$/,
];

function pathOf(context: Deno.lint.RuleContext): string {
  return context.filename.startsWith(PROJECT) ? context.filename.slice(PROJECT.length) : context.filename;
}

function isAmong(path: string, patterns: readonly RegExp[]): boolean {
  return patterns.some((pattern) => pattern.test(path));
}

const plugin: Deno.lint.Plugin = {
  name: "tensorlet",
  rules: {
    "pure-core": {
      create(context) {
        const path = pathOf(context);
        if (!path.startsWith("runtime/core/") || path.endsWith("_test.ts")) return {};
        const report = (node: Deno.lint.Node, name: string) =>
          context.report({ node, message: `runtime/core does no I/O and knows no runtime: no ${name}` });
        return {
          Identifier(node) {
            if (NOT_IN_CORE.includes(node.name)) report(node, node.name);
          },
          "MemberExpression[computed=true] > Literal"(node: Deno.lint.StringLiteral) {
            if (NOT_IN_CORE.includes(node.value)) report(node, node.value);
          },
        };
      },
    },
    "default-export": {
      create(context) {
        if (isAmong(pathOf(context), DEFAULT_EXPORTS)) return {};
        const message = "Only functions export by default";
        return {
          ExportDefaultDeclaration: (node) => context.report({ node, message }),
          ExportSpecifier(node) {
            if (node.exported.type === "Identifier" && node.exported.name === "default") {
              context.report({ node, message });
            }
          },
        };
      },
    },
    "named-reexports": {
      create(context) {
        if (pathOf(context) !== "mod.ts") return {};
        return {
          ExportAllDeclaration: (node) => context.report({ node, message: "mod.ts names what it exports" }),
        };
      },
    },
    "computed-import": {
      create(context) {
        if (isAmong(pathOf(context), COMPUTED_IMPORTS)) return {};
        return {
          ImportExpression(node) {
            if (node.source.type === "Literal") return;
            context.report({ node, message: "The import table cannot see what a computed import() imports" });
          },
        };
      },
    },
  },
};

// deno-lint-ignore tensorlet/default-export -- `deno lint` wants a plugin as the default export
export default plugin;
