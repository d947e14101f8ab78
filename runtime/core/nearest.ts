/** The candidates that `name` may have been meant for, best first, three at most. */
export function nearest(name: string, candidates: readonly string[]): readonly string[] {
  const wanted = name.slice(0, 100);
  return candidates
    .map((candidate) => ({ candidate, distance: editDistance(wanted, candidate) }))
    .filter(({ candidate, distance }) => distance <= Math.max(2, candidate.length / 2))
    .sort((a, b) => a.distance - b.distance || a.candidate.localeCompare(b.candidate))
    .slice(0, 3)
    .map(({ candidate }) => candidate);
}

// Levenshtein's distance, two rows at a time.
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 0; i < a.length; i++) {
    const row = [i + 1];
    for (let j = 0; j < b.length; j++) {
      row.push(Math.min(row[j]! + 1, previous[j + 1]! + 1, previous[j]! + (a[i] === b[j] ? 0 : 1)));
    }
    previous = row;
  }
  return previous[b.length]!;
}
