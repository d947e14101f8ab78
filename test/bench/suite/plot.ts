// Results as an SVG picture: a panel for each row, a bar for each contender. Pure.
//
// Written by hand: what makes SVG without a DOM is either far larger than this project (Vega, ECharts), or is scales and
// paths alone (d3), of which bars from zero need a division.
import { type ContenderResult, figureOf, FIGURES, goalsOf, type RowResult } from "./results.ts";
import type { Spread } from "./stats.ts";
import { formatNumber } from "./table.ts";

const COLUMNS = 2;
const MARGIN = 28;
const PANEL_WIDTH = 520;
const NAMES = 158;
const VALUES = 62;
const BAR = 16;
const LINE = 24;
const HEADING = 54;
const TITLE = 62;

const STYLE = `
text { font: 12px "Helvetica Neue", Helvetica, Arial, sans-serif; fill: #1f2937; }
.title { font-size: 20px; font-weight: bold; }
.panel { font-size: 14px; font-weight: bold; }
.note { fill: #6b7280; }
.ours { fill: #0f766e; }
.variant { fill: #7dbdb5; }
.other { fill: #b6bcc6; }
.spread { stroke: #374151; stroke-width: 1.2; fill: none; }
.goal { stroke: #c2410c; stroke-width: 2; }
.asked { fill: #c2410c; font-size: 10px; }
.value { paint-order: stroke; stroke: #fff; stroke-width: 3px; }
.axis { stroke: #d1d5db; }`;

/** A picture of what each row is about, with the spread, and what the goals ask of the first contender. */
export function plot(rows: readonly RowResult[], subtitle: string): string {
  const measured = rows.map(withoutUnmeasured).filter(({ contenders }) => contenders.length > 0);
  const width = COLUMNS * PANEL_WIDTH + (COLUMNS + 1) * MARGIN;
  const bottoms = Array.from({ length: COLUMNS }, () => MARGIN + TITLE);
  const panels = measured.map((row) => {
    const column = bottoms.indexOf(Math.min(...bottoms)); // the shortest so far
    const top = bottoms[column]!;
    bottoms[column]! += HEADING + row.contenders.length * LINE + MARGIN;
    return `<g transform="translate(${MARGIN + column * (PANEL_WIDTH + MARGIN)} ${top})">\n${panel(row)}\n</g>`;
  });
  const height = Math.max(...bottoms);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
<style>${STYLE}
</style>
<rect width="100%" height="100%" fill="#fff"/>
${text(MARGIN, MARGIN + 14, "Tensorlet and others, side by side", "title")}
${text(MARGIN, MARGIN + 36, subtitle, "note")}
${panels.join("\n")}
</svg>
`;
}

function withoutUnmeasured(row: RowResult): RowResult {
  return { ...row, contenders: row.contenders.filter((contender) => figureOf(contender, row.figure)) };
}

function panel(row: RowResult): string {
  const { label, better } = FIGURES[row.figure];
  const bars = row.contenders.map((contender) => ({ contender, spread: figureOf(contender, row.figure)! }));
  const goal = strictestGoal(row);
  const largest = Math.max(...bars.map(({ spread }) => spread.max), goal ?? 0);
  const scale = (PANEL_WIDTH - NAMES - VALUES) / largest;
  const bottom = HEADING + bars.length * LINE - (LINE - BAR) / 2;
  const lines = bars.map(({ contender, spread }, index) => bar(contender, spread, scale, HEADING + index * LINE));
  return [
    text(0, 14, row.title, "panel"),
    text(0, 32, `${label}: ${better} is better`, "note"),
    line(NAMES, HEADING - 4, NAMES, bottom, "axis"),
    ...goal === undefined ? [] : [goalMark(NAMES + goal * scale)],
    ...lines,
  ].join("\n");
}

function bar({ name }: ContenderResult, { median, min, max }: Spread, scale: number, top: number): string {
  const middle = top + BAR / 2;
  const [left, right] = [NAMES + min * scale, NAMES + max * scale];
  const kind = name === "Tensorlet" ? "ours" : name.startsWith("Tensorlet") ? "variant" : "other";
  const width = round(Math.max(median * scale, 1));
  return [
    text(NAMES - 8, middle + 4, name, "", "end"),
    `<rect class="${kind}" x="${NAMES}" y="${top}" width="${width}" height="${BAR}" rx="2"/>`,
    `<path class="spread" d="M${round(left)} ${middle - 4}v8m0-4H${round(right)}m0-4v8"/>`,
    text(right + 6, middle + 4, formatNumber(median), "value"),
  ].join("\n");
}

// Beside the first bar, which it is about.
function goalMark(x: number): string {
  return `${line(x, HEADING - 5, x, HEADING + BAR + 4, "goal")}\n${text(x, HEADING - 8, "goal", "asked", "middle")}`;
}

/** The value that the hardest goal asks for of the row's first contender. */
function strictestGoal(row: RowResult): number | undefined {
  const asked = goalsOf(row).filter(({ of, figure }) => of === row.contenders[0]!.name && figure === row.figure).map(
    ({ to, atMost, atLeast }) =>
      (atMost ?? atLeast!) * figureOf(row.contenders.find(({ name }) => name === to)!, row.figure)!.median,
  );
  if (asked.length === 0) return undefined;
  return FIGURES[row.figure].better === "lower" ? Math.min(...asked) : Math.max(...asked);
}

function text(x: number, y: number, content: string, kind: string, anchor = "start"): string {
  const escaped = content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return `<text class="${kind}" x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${escaped}</text>`;
}

function line(x1: number, y1: number, x2: number, y2: number, kind: string): string {
  return `<line class="${kind}" x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}"/>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
