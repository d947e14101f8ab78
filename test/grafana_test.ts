// examples/grafana: what the dashboard asks for is there, and Prometheus can read its questions.
import { defineModel } from "tensorlet";
import { assert, assertEquals } from "tensorlet/assert";
import { createTestServer } from "tensorlet/testing";
import { parseExposition } from "./harness/exposition.ts";
import { promtool } from "./harness/promtool.ts";

const FOLDER = new URL("../examples/grafana/", import.meta.url);

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly w: number };
    readonly targets?: readonly { readonly expr: string }[];
  }[];
  readonly templating: { readonly list: readonly { readonly definition?: string }[] };
}

const dashboard: Dashboard = JSON.parse(await Deno.readTextFile(new URL("tensorlet.json", FOLDER)));
const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

/** Names of metrics, as they are in queries. */
function namesIn(query: string): readonly string[] {
  return query.match(/\b(tensorlet|process)_\w+/g) ?? [];
}

Deno.test("the dashboard knows only metrics that there are, and shows all of them", async () => {
  await using server = await createTestServer({ empty: defineModel({ predict: () => [] }) });
  const response = await server.fetch(new Request("http://localhost/metrics"));
  const { types } = parseExposition(await response.text());
  const known = new Map(
    [...types].flatMap(([name, type]) =>
      type === "histogram"
        ? ["bucket", "sum", "count"].map((part) => [`${name}_${part}`, name] as const)
        : [[name, name] as const]
    ),
  );
  const definitions = dashboard.templating.list.flatMap(({ definition = "" }) => namesIn(definition));
  const named = [...queries.flatMap(namesIn), ...definitions];
  assert(named.length > 30);
  assertEquals(named.filter((name) => !known.has(name)), []);
  const shown = new Set(named.map((name) => known.get(name)!));
  assertEquals([...types.keys()].filter((name) => !shown.has(name)), []);
});

Deno.test("the dashboard's queries can be read by Prometheus, and its panels by Grafana", async () => {
  const rules = queries.map((query, i) => ({
    record: `query_${i}`,
    expr: query.replaceAll("$__rate_interval", "1m").replaceAll("$model", ".*"),
  }));
  const text = JSON.stringify({ groups: [{ name: "queries", rules }] }); // YAML, too
  const answer = await promtool(["check", "rules", "/dev/stdin"], text);
  if (answer !== undefined) assert(answer.includes(`SUCCESS: ${queries.length} rules found`), answer);
  for (const { title, gridPos: { x, w } } of dashboard.panels) assert(x + w <= 24, title);
});

Deno.test("the example's configuration can be read by Prometheus", async () => {
  const text = await Deno.readTextFile(new URL("prometheus.yml", FOLDER));
  const answer = await promtool(["check", "config", "/dev/stdin"], text);
  if (answer !== undefined) assert(answer.includes("SUCCESS"), answer);
});
