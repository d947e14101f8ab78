// htm.js, whose own types are of a CommonJS module.
// deno-lint-ignore no-explicit-any
type Make<R> = (type: any, props: any, ...children: any[]) => R;
declare const htm: { bind<R>(make: Make<R>): (strings: TemplateStringsArray, ...values: unknown[]) => R | R[] };
export default htm;
