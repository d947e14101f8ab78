import { assert, assertEquals, assertStringIncludes } from "tensorlet/assert";
import { plot } from "./plot.ts";
import { ROW } from "./sample_results.ts";

/** The elements of a text that is well-formed; throws where a tag is not closed or a text not escaped. */
function elements(xml: string): string[] {
  const open: string[] = [];
  const found: string[] = [];
  for (const [, close, name, single, text] of xml.matchAll(/<(\/?)(\w+)[^<>]*?(\/?)>([^<]*)/g)) {
    if (close) assertEquals(open.pop(), name);
    else {
      found.push(name!);
      if (!single) open.push(name!);
    }
    assert(!/[<>]|&(?!amp;|lt;|gt;)/.test(text!), `Not escaped: ${text}`);
  }
  assertEquals(open, []);
  return found;
}

Deno.test("plot draws a bar, its spread and its value for each contender", () => {
  const svg = plot([ROW], "two & more");
  const names = elements(svg);
  assertEquals(names.filter((name) => name === "rect").length, 1 + 2); // the background, and a bar each
  assertEquals(names.filter((name) => name === "path").length, 2);
  for (const text of ["small calls &amp; &lt;more&gt;", "two &amp; more", ">8,000<", ">1,500<", ">goal<"]) {
    assertStringIncludes(svg, text);
  }
});

Deno.test("plot leaves out rows and contenders that were not measured", () => {
  const unmeasured = { ...ROW, contenders: [...ROW.contenders, { name: "C++", rounds: [] }] };
  assertEquals(plot([unmeasured, { ...ROW, contenders: [] }], ""), plot([ROW], ""));
  elements(plot([], "nothing"));
});

Deno.test("plot's bars are as long as their values, and never beyond the panel", () => {
  const widths = [...plot([ROW], "").matchAll(/<rect class="\w+" [^>]* width="([\d.]+)"/g)].map((match) =>
    Number(match[1])
  );
  assert(Math.abs(widths[0]! / widths[1]! - 8000 / 1500) < 0.01, `${widths}`);
  assert(Math.max(...widths) <= 520, `${widths}`);
});
