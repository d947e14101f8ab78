// Reads Prometheus' text format.

/** A metric's numbers by their labels, as they are written: `model="m",version="1"`. */
export type Exposed = ReadonlyMap<string, number>;

/** The answer of a server to `/metrics`. */
export interface Exposition {
  readonly text: string;
  /** Names of metrics with their types. */
  readonly types: ReadonlyMap<string, string>;
  /** The numbers of a metric: of a histogram those with a suffix, `NAME_count` say. */
  of(name: string): Exposed;
  /** The sum of the numbers of a metric whose labels contain all of `parts`. */
  sum(name: string, ...parts: readonly string[]): number;
}

const SAMPLE = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/;

/** Reads an answer; throws where a line is none. */
export function parseExposition(text: string): Exposition {
  const types = new Map<string, string>();
  const samples = new Map<string, Map<string, number>>();
  for (const line of text.split("\n")) {
    if (line.startsWith("# TYPE ")) {
      const [, , name, type] = line.split(" ");
      types.set(name!, type!);
    }
    if (line === "" || line.startsWith("#")) continue;
    const [, name, labels = "", value] = SAMPLE.exec(line) ?? [];
    if (name === undefined) throw new Error(`Cannot read ${JSON.stringify(line)}`);
    samples.set(name, (samples.get(name) ?? new Map()).set(labels, Number(value)));
  }
  const of = (name: string): Exposed => samples.get(name) ?? new Map();
  return {
    text,
    types,
    of,
    sum: (name, ...parts) =>
      [...of(name)].filter(([labels]) => parts.every((part) => labels.includes(part)))
        .reduce((sum, [, value]) => sum + value, 0),
  };
}
