// What a run gives, as it is written to JSON, and what it comes to. Pure.
import { ratios, type Spread, spread } from "./stats.ts";

/** What is measured of a block. */
export const FIGURES = {
  p50: { label: "p50, ms", better: "lower" },
  p99: { label: "p99, ms", better: "lower" },
  rate: { label: "calls a second", better: "higher" },
  tokens: { label: "tokens a second", better: "higher" },
  first: { label: "first token, ms", better: "lower" },
  /** Of the server and all its processes, user and system. */
  cpu: { label: "CPU a call, ms", better: "lower" },
} as const;

/** The name of a figure. */
export type Figure = keyof typeof FIGURES;
/** What a block gave. */
export type Figures = Readonly<Partial<Record<Figure, number>>>;

/** What one contender's figure should be of another's, in the same round. */
export interface Goal {
  readonly figure: Figure;
  readonly of: string;
  readonly to: string;
  readonly atMost?: number;
  readonly atLeast?: number;
}

/** A contender's figures, round by round: a round in which it failed has none. */
export interface ContenderResult {
  readonly name: string;
  readonly rounds: readonly (Figures | undefined)[];
}

/** A row that was run. */
export interface RowResult {
  readonly id: string;
  readonly title: string;
  readonly figure: Figure;
  readonly contenders: readonly ContenderResult[];
  readonly goals: readonly Goal[];
}

/** What could not be run, and why. */
export interface Skipped {
  readonly what: string;
  readonly why: string;
}

/** A goal that could be looked at. */
export interface GoalResult extends Goal {
  readonly ratio: Spread;
  readonly isMet: boolean;
}

/** What a server takes of memory, in MiB unless the name says otherwise. */
export interface MemoryResult {
  readonly server: string;
  readonly idle: number;
  readonly connectionKib?: number;
  readonly streamKib?: number;
  readonly message?: number;
  /** After equal parts of the small calls. */
  readonly afterCalls?: readonly number[];
}

/** All of a run. */
export interface Results {
  readonly startedAt: string;
  readonly seconds: number;
  readonly rounds: number;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly rows: readonly RowResult[];
  readonly goals: readonly (GoalResult & { readonly row: string })[];
  readonly memory: readonly MemoryResult[];
  /** Between two figures of `afterCalls`. */
  readonly memoryCalls: number;
  readonly skipped: readonly Skipped[];
}

/** A contender's figure over the rounds. */
export function figureOf({ rounds }: ContenderResult, figure: Figure): Spread | undefined {
  return spread(rounds.map((figures) => figures?.[figure]));
}

/** The goals of a row whose contenders were both measured. */
export function goalsOf({ contenders, goals }: RowResult): GoalResult[] {
  return goals.flatMap((goal) => {
    const [of, to] = [goal.of, goal.to].map((wanted) => contenders.find(({ name }) => name === wanted)?.rounds ?? []);
    const ratio = ratios(of!.map((round) => round?.[goal.figure]), to!.map((round) => round?.[goal.figure]));
    if (!ratio) return [];
    const isMet = goal.atMost === undefined ? ratio.median >= goal.atLeast! : ratio.median <= goal.atMost;
    return [{ ...goal, ratio, isMet }];
  });
}
