import { assert, assertEquals } from "tensorlet/assert";
import { assertFails, SILENT } from "../../test/harness/calls.ts";
import { findEntry, splitVersion, unimplemented } from "./catalog.ts";
import { nearest } from "./nearest.ts";
import { defineModel, resolveModel } from "./define.ts";
import { Registry } from "./registry.ts";
import { inlinePool } from "../workers/inline.ts";

const answers = defineModel({ predict: () => [] });
const talks = defineModel({ chat: async function* () {} });

function catalogOf(...names: readonly string[]): Registry {
  const registry = new Registry(SILENT);
  for (const full of names) {
    const [name, version] = full.split("@");
    const model = resolveModel(name!.startsWith("bot") ? talks : answers, name!, version);
    registry.add(inlinePool(model, { log: SILENT }));
  }
  return registry;
}

Deno.test("findEntry() finds a function by name and by name and version", () => {
  const catalog = catalogOf("digits@2", "digits@1", "affine");
  const found = (requested: string) => {
    const { name, version } = findEntry(catalog, requested, "predict", "model_id");
    return `${name}@${version}`;
  };
  assertEquals(found("affine"), "affine@1");
  assertEquals(found("digits@1"), "digits@1");
  assertEquals(found("digits"), "digits@2");
});

Deno.test("findEntry() takes the newest version by number, not by letter", () => {
  assertEquals(findEntry(catalogOf("m@9", "m@10", "m@1"), "m", "predict", "model_id").version, "10");
});

Deno.test("findEntry() takes the only function that can answer when none is named", () => {
  assertEquals(findEntry(catalogOf("bot", "affine"), "", "predict", "model_id").name, "affine");
  assertEquals(findEntry(catalogOf("bot", "affine"), "", "chat", "model_id").name, "bot");
});

Deno.test("findEntry() counts the versions of one function as one", () => {
  const { name, version } = findEntry(catalogOf("m@1", "m@2", "bot"), "", "predict", "model_id");
  assertEquals([name, version], ["m", "2"]);
});

Deno.test("findEntry() lists those that can answer when none is named and there are several", async () => {
  const catalog = catalogOf("b@1", "b@2", "a", "bot");
  await assertFails("invalid_argument", 'model_id is empty, wanted one of "a", "b"', () => {
    findEntry(catalog, "", "predict", "model_id");
  });
  await assertFails("invalid_argument", "model_name is empty and no function has a chat handler", () => {
    findEntry(catalogOf("a"), "", "chat", "model_name");
  });
});

Deno.test("findEntry() lists twenty names and says that there are more", async () => {
  const names = Array.from({ length: 25 }, (_, i) => `m${i + 10}`);
  const { message } = await assertFails("invalid_argument", '"m29", ...', () => {
    findEntry(catalogOf(...names), "", "predict", "model_id");
  });
  assert(!message.includes("m30"));
  const versions = names.map((_, i) => `v@${i}`);
  const error = await assertFails("not_found", 'has no version "x", only "24"', () => {
    findEntry(catalogOf(...versions), "v@x", "predict", "model_id");
  });
  assert(error.message.endsWith(", ..."));
});

Deno.test("findEntry() tells an unknown version from an unknown name", async () => {
  const catalog = catalogOf("digits@2", "digits@1");
  const find = (requested: string) => () => findEntry(catalog, requested, "predict", "model_id");
  await assertFails("not_found", 'Model "digits" has no version "3", only "2", "1"', find("digits@3"));
  await assertFails("not_found", 'Model "digits" has no version ""', find("digits@"));
  await assertFails("not_found", 'There is no model "digit@3"; the nearest name is "digits"', find("digit@3"));
  await assertFails("not_found", 'There is no model "@1"', find("@1"));
});

Deno.test("findEntry() suggests nothing when no name is near", async () => {
  const { message } = await assertFails("not_found", "There is no model", () => {
    findEntry(catalogOf("digits"), "constructor", "predict", "model_id");
  });
  assertEquals(message, 'There is no model "constructor"');
});

Deno.test("findEntry() cuts what it repeats to 100 characters", async () => {
  const { message } = await assertFails("not_found", `"${"x".repeat(100)}…"`, () => {
    findEntry(catalogOf("digits"), "x".repeat(1_000_000), "predict", "model_id");
  });
  assert(message.length < 150);
  const error = await assertFails("not_found", "has no version", () => {
    findEntry(catalogOf("digits"), `digits@${"1".repeat(1_000_000)}`, "predict", "model_id");
  });
  assert(error.message.length < 200);
});

Deno.test("findEntry() takes the version that a split of the traffic gives, unless one is named", () => {
  const catalog = catalogOf("m@1", "m@2");
  catalog.setWeights("m", { "1": 1 });
  const found = (requested: string) => findEntry(catalog, requested, "predict", "model_id").version;
  assertEquals([found("m"), found(""), found("m@2")], ["1", "1", "2"]);
});

Deno.test("findEntry() takes a version that can answer when none is named and the split gives one that cannot", () => {
  const registry = catalogOf("m@1");
  registry.add(inlinePool(resolveModel(talks, "m", "2"), { log: SILENT }));
  registry.setWeights("m", { "2": 1 });
  assertEquals(findEntry(registry, "", "predict", "model_id").version, "1");
});

Deno.test("findEntry() says that a function whose file cannot be read cannot be called", async () => {
  const registry = catalogOf("a");
  registry.addFailed("broken", "1");
  await assertFails("unavailable", 'Function "broken" cannot be loaded; the server\'s log says why', () => {
    findEntry(registry, "broken", "predict", "model_id");
  });
  assertEquals(findEntry(registry, "", "predict", "model_id").name, "a");
});

Deno.test("splitVersion() splits at the last @ that has a name before it", () => {
  assertEquals(splitVersion("m@1"), ["m", "1"]);
  assertEquals(splitVersion("m"), ["m", undefined]);
  assertEquals(splitVersion("m@"), ["m", ""]);
  assertEquals(splitVersion("@1"), ["@1", undefined]);
  assertEquals(splitVersion("a@b@1"), ["a@b", "1"]);
});

Deno.test("findEntry() says which handler a function lacks", async () => {
  await assertFails("unimplemented", 'Function "bot" has no predict handler, nor one that can stand in for it', () => {
    findEntry(catalogOf("bot"), "bot", "predict", "model_id");
  });
  assertEquals(unimplemented("x", "batch").code, "unimplemented");
});

Deno.test("nearest() gives three at most, the best first", () => {
  assertEquals(nearest("digts", ["austen", "digests", "dig", "digit", "digits", "affine"]), [
    "digits",
    "dig",
    "digests",
  ]);
  assertEquals(nearest("affine", ["afine", "affine"]), ["affine", "afine"]);
  assertEquals(nearest("", ["digits"]), []);
});
