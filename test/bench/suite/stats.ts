// What blocks of measurements come to, and the order in which they are taken. Pure.

/** The middle of one figure's values over the rounds, and how far they spread. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/**
 * The value below which a share of all values lies, by linear interpolation as NumPy's `percentile`.
 *
 * @param at 0 to 1
 * @throws {RangeError} where there is no value
 */
export function quantile(values: readonly number[], at: number): number {
  if (values.length === 0) throw new RangeError("Cannot take a quantile of no values");
  const sorted = values.toSorted((a, b) => a - b);
  const position = (sorted.length - 1) * at;
  const below = Math.floor(position);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below]! + (sorted[above]! - sorted[below]!) * (position - below);
}

/** The median, smallest and largest of values that are there: `undefined` where none is. */
export function spread(values: readonly (number | undefined)[]): Spread | undefined {
  const known = values.filter((value) => value !== undefined && Number.isFinite(value)) as number[];
  if (known.length === 0) return undefined;
  return { median: quantile(known, 0.5), min: Math.min(...known), max: Math.max(...known) };
}

/**
 * The ratio of two figures, round by round: both of a round met the same noise, so the ratio is steadier than either.
 * A round that lacks one of them is left out.
 */
export function ratios(
  values: readonly (number | undefined)[],
  references: readonly (number | undefined)[],
): Spread | undefined {
  return spread(values.map((value, round) => {
    const reference = references[round];
    return value === undefined || reference === undefined ? undefined : value / reference;
  }));
}

/**
 * All members in the order of a round: each round begins with another one, and every second one runs backwards, so that
 * nobody always follows the same one.
 */
export function orderOf<T>(members: readonly T[], round: number): T[] {
  const start = members.length === 0 ? 0 : Math.floor(round / 2) % members.length;
  const order = [...members.slice(start), ...members.slice(0, start)];
  return round % 2 === 0 ? order : order.reverse();
}
