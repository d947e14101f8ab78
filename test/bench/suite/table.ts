// Results as text. Pure.
import {
  type ContenderResult,
  type Figure,
  figureOf,
  FIGURES,
  type GoalResult,
  goalsOf,
  type MemoryResult,
  type Results,
  type RowResult,
  type Skipped,
} from "./results.ts";
import type { Spread } from "./stats.ts";

/** All of a run. */
export function formatResults({ rows, memory, memoryCalls, skipped, rounds }: Results): string {
  return [
    `Medians of ${rounds} rounds, (min to max)`,
    ...rows.map(formatRow),
    ...memory.length > 0 ? [formatMemory(memory, memoryCalls)] : [],
    formatGoals(rows),
    ...skipped.length > 0 ? [formatSkipped(skipped)] : [],
  ].join("\n\n");
}

/** A row: a line for each contender, a column for each figure, the row's own first. */
export function formatRow({ title, figure: own, contenders }: RowResult): string {
  const names = [own, ...(Object.keys(FIGURES) as Figure[]).filter((figure) => figure !== own)];
  const figures = names.filter((figure) => contenders.some((contender) => figureOf(contender, figure)));
  const header = figures.map((figure) => FIGURES[figure].label);
  const line = (contender: ContenderResult) => [
    contender.name,
    ...figures.map((figure) => formatSpread(figureOf(contender, figure))),
  ];
  return contenders.length === 0
    ? `${title}: not measured`
    : `${title}\n${align([["", ...header], ...contenders.map(line)])}`;
}

/** The ratios that the goals are about. */
export function formatGoals(rows: readonly RowResult[]): string {
  const lines = rows.flatMap((row) =>
    goalsOf(row).map((goal) => [
      row.id,
      `${FIGURES[goal.figure].label.replace(", ms", "")} of ${goal.of} to ${goal.to}`,
      formatSpread(goal.ratio),
      formatGoal(goal),
      goal.isMet ? "met" : "MISSED",
    ])
  );
  return lines.length === 0 ? "No goal could be looked at" : `Ratios, each within its round\n${align(lines, 2)}`;
}

function formatGoal({ atMost, atLeast }: GoalResult): string {
  return atMost === undefined ? `at least ${atLeast}` : `at most ${atMost}`;
}

/** A line for each server; `calls` lie between two of its figures after calls. */
export function formatMemory(memory: readonly MemoryResult[], calls: number): string {
  const growth = ({ afterCalls }: MemoryResult) => afterCalls && afterCalls.at(-1)! - afterCalls[0]!;
  const number = (value: number | undefined) => value === undefined ? "-" : formatNumber(value);
  const title = "Memory, RSS of the server and all its processes";
  const header = ["", "idle, MiB", "a connection, KiB", "an open stream, KiB", "64 MiB message, MiB on top"];
  const lines = memory.map((each) => [
    each.server,
    ...[each.idle, each.connectionKib, each.streamKib, each.message].map(number),
    each.afterCalls?.map(formatNumber).join(" ") ?? "-",
    number(growth(each)),
  ]);
  const counts = `after each ${calls.toLocaleString("en")} small calls, MiB`;
  return `${title}\n${align([[...header, counts, "growth, MiB"], ...lines])}`;
}

/** What could not be run, by reason. */
export function formatSkipped(skipped: readonly Skipped[]): string {
  const reasons = Map.groupBy(skipped, ({ why }) => why);
  const lines = [...reasons].map(([why, all]) => `  ${all.map(({ what }) => what).join("; ")}: ${why}`);
  return `Could not be run\n${lines.join("\n")}`;
}

function formatSpread(spread: Spread | undefined): string {
  if (!spread) return "-";
  return `${formatNumber(spread.median)} (${formatNumber(spread.min)} to ${formatNumber(spread.max)})`;
}

/** Three significant digits, and no more than are there. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const digits = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString("en", {
    minimumFractionDigits: Math.min(digits, 3),
    maximumFractionDigits: Math.min(digits, 3),
  });
}

// Texts to the left in the first columns, figures to the right.
function align(lines: readonly (readonly string[])[], texts = 1): string {
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const cell = (text: string, column: number) =>
    column < texts ? text.padEnd(widths[column]!) : text.padStart(widths[column]!);
  return lines.map((line) => `  ${line.map(cell).join("  ")}`.trimEnd()).join("\n");
}
