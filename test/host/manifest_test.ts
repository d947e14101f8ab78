import { assertEquals, assertRejects, assertThrows } from "tensorlet/assert";
import { ConfigError } from "../../runtime/host/error.ts";
import { type FunctionSettings, parseManifest, readManifest } from "../../runtime/host/manifest.ts";

const parse = (value: unknown) =>
  parseManifest(JSON.stringify(value), "/srv/functions/functions.json", ["digits", "austen"]);

const DEFAULTS: FunctionSettings = {
  isolation: "worker",
  isolationPinned: false,
  permissions: {},
  instances: { min: 0, max: 1 },
  concurrency: 100,
  queue: 1_000,
  loadTimeoutMs: 60_000,
  callTimeoutMs: undefined,
  graceMs: 2_000,
  idleMs: 300_000,
  heapMb: undefined,
  warm: false,
  weights: undefined,
};

Deno.test("parseManifest() has a default for every field", () => {
  assertEquals(parse({}).settingsOf("digits"), DEFAULTS);
  assertEquals(parse({ austen: { warm: true } }).settingsOf("digits"), DEFAULTS);
  assertEquals(parse({}).settingsOf("constructor"), DEFAULTS);
});

Deno.test("parseManifest() reads every field", () => {
  const fields = {
    isolation: "process" as const,
    permissions: { net: ["example.com"], read: ["data"] },
    instances: { min: 0, max: 2 },
    concurrency: 1,
    queue: 0,
    loadTimeoutMs: 30_000,
    callTimeoutMs: 2 ** 31 - 1,
    graceMs: 0,
    idleMs: 1,
    heapMb: 512,
    warm: true,
    weights: { "1": 90, "2.1": 0.5 },
  };
  assertEquals(parse({ digits: fields }).settingsOf("digits"), {
    ...fields,
    isolationPinned: true,
    permissions: { net: ["example.com"], read: ["/srv/functions/data"] },
  });
});

Deno.test("parseManifest() lets a function's own field take the place of the whole default for all", () => {
  const manifest = parse({
    "*": { warm: true, isolation: "process", permissions: { net: true }, instances: { min: 2, max: 4 }, heapMb: 64 },
    digits: { warm: false, permissions: { ffi: true }, instances: { max: 3 } },
    austen: { isolation: "inline" },
  });
  const { isolation, isolationPinned, permissions, instances, heapMb, warm } = manifest.settingsOf("digits");
  assertEquals({ isolation, isolationPinned, permissions, instances, heapMb, warm }, {
    isolation: "process",
    isolationPinned: true,
    permissions: { ffi: true },
    instances: { min: 0, max: 3 },
    heapMb: 64,
    warm: false,
  });
  assertEquals(manifest.settingsOf("austen").permissions, {});
});

for (
  const [fields, instances] of [
    [{ warm: true }, { min: 1, max: 1 }],
    [{ warm: true, instances: { min: 0 } }, { min: 0, max: 1 }],
    [{ warm: true, instances: { max: 3 } }, { min: 1, max: 3 }],
    [{ instances: {} }, { min: 0, max: 1 }],
    [{ instances: { min: 3 } }, { min: 3, max: 3 }],
  ] as const
) {
  Deno.test(`parseManifest() makes instances ${JSON.stringify(instances)} of ${JSON.stringify(fields)}`, () => {
    assertEquals(parse({ digits: fields }).settingsOf("digits").instances, instances);
  });
}

const PATH = "Cannot read /srv/functions/functions.json: ";

for (
  const [value, text] of [
    [[], `${PATH}got [], wanted an object`],
    [null, `${PATH}got null, wanted an object`],
    [{ digit: {} }, `${PATH}there is no function "digit"; did you mean "digits"?`],
    [{ digits: 1 }, `${PATH}"digits" is 1, wanted an object`],
    [{ digits: { wram: true } }, `${PATH}"digits": there is no field "wram"; did you mean "warm"?`],
    [{ "*": { toString: 1 } }, `${PATH}"*": there is no field "toString"`],
    [{ digits: { warm: "yes" } }, `${PATH}"warm" of "digits" is "yes", wanted true or false`],
    [
      { digits: { isolation: "proces" } },
      '"isolation" of "digits" is "proces", wanted "inline", "worker" or "process"',
    ],
    [{ digits: { isolation: null } }, '"isolation" of "digits" is null'],
    [{ digits: { instances: 2 } }, '"instances" of "digits" is 2, wanted an object such as { "min": 0, "max": 2 }'],
    [{ digits: { instances: { mim: 1 } } }, '"instances" of "digits": there is no field "mim"; did you mean "min"?'],
    [{ digits: { instances: { min: -1 } } }, '"instances.min" of "digits" is -1, wanted an integer from 0 to 1000'],
    [{ digits: { instances: { max: 0 } } }, '"instances.max" of "digits" is 0, wanted an integer from 1 to 1000'],
    [
      { digits: { instances: { min: 3, max: 2 } } },
      '"instances" of "digits" is {"min":3,"max":2}, wanted a min that is at most the max',
    ],
    [{ digits: { concurrency: 0 } }, '"concurrency" of "digits" is 0, wanted an integer from 1 to 1000000'],
    [{ digits: { concurrency: 1.5 } }, '"concurrency" of "digits" is 1.5'],
    [{ digits: { queue: "10" } }, '"queue" of "digits" is "10", wanted an integer from 0 to 1000000'],
    [{ digits: { loadTimeoutMs: 0 } }, '"loadTimeoutMs" of "digits" is 0, wanted an integer from 1 to 2147483647'],
    [{ digits: { callTimeoutMs: 2 ** 31 } }, '"callTimeoutMs" of "digits" is 2147483648'],
    [{ digits: { graceMs: -1 } }, '"graceMs" of "digits" is -1, wanted an integer from 0'],
    [{ digits: { idleMs: 0 } }, '"idleMs" of "digits" is 0'],
    [{ digits: { isolation: "process", heapMb: 1 } }, '"heapMb" of "digits" is 1, wanted an integer from 16'],
    [
      { digits: { isolation: "worker", heapMb: 64 } },
      '"heapMb" of "digits" is 64, wanted "isolation": "process" with it: it has no effect on "worker"',
    ],
    [{ "*": { heapMb: 64, isolation: "inline" } }, '"heapMb" of "*" is 64, wanted "isolation": "process" with it'],
    [{ "*": { isolation: "inline" }, digits: { heapMb: 64 } }, 'it has no effect on "inline"'],
    [{ digits: { permissions: "none" } }, '"permissions" of "digits" is "none", wanted an object such as'],
    [
      { digits: { permissions: { nett: true } } },
      '"permissions" of "digits": there is no permission "nett"; did you mean "net"?',
    ],
    [
      { digits: { permissions: { net: 1 } } },
      '"permissions.net" of "digits" is 1, wanted true, false or a list of hosts',
    ],
    [
      { digits: { permissions: { sys: ["hostnam"] } } },
      '"permissions.sys" of "digits": there is no name "hostnam"; did you mean "hostname"?',
    ],
    [
      { digits: { isolation: "inline", permissions: { net: true } } },
      '"permissions" of "digits" is {"net":true}, wanted "isolation": "worker" or "process" with it: it has no effect on ' +
      '"inline", which may do what the server may',
    ],
    [{ "*": { isolation: "inline" }, digits: { permissions: {} } }, 'has no effect on "inline"'],
    [{ "*": { isolation: "inline", permissions: {} } }, '"permissions" of "*" is {}'],
    [{ "*": { weights: { "1": 1 } } }, '"weights" of "*" is {"1":1}, wanted the weights of one function'],
    [{ digits: { weights: [1] } }, '"weights" of "digits" is [1], wanted an object such as { "1": 90, "2": 10 }'],
    [{ digits: { weights: { "1": -1 } } }, '"weights.1" of "digits" is -1, wanted a number that is not negative'],
    [{ digits: { weights: { "1": "90" } } }, '"weights.1" of "digits" is "90"'],
    [{ digits: { weights: { "1": 0, "2": 0 } } }, '"weights" of "digits" is {"1":0,"2":0}, wanted one weight at least'],
    [{ digits: { weights: {} } }, "wanted one weight at least over 0"],
    [{ digits: { weights: { "a b": 1 } } }, 'with versions of letters, digits, ".", "_" and "-"'],
  ] as const
) {
  Deno.test(`parseManifest() refuses ${JSON.stringify(value)}`, () => {
    assertThrows(() => parse(value), ConfigError, text);
  });
}

Deno.test("parseManifest() lets defaults for all be without effect on a function that differs", () => {
  const manifest = parse({ "*": { heapMb: 64, permissions: { net: true } }, digits: { isolation: "inline" } });
  assertEquals(manifest.settingsOf("austen").heapMb, 64);
  assertEquals(parse({ digits: { heapMb: 64 } }).settingsOf("digits").heapMb, 64); // it may be moved to a process
  assertEquals(manifest.settingsOf("digits").permissions, {});
});

Deno.test("parseManifest() refuses what is no JSON, naming the file", () => {
  assertThrows(() => parseManifest("{", "/srv/functions.json", []), ConfigError, "/srv/functions.json: ");
  assertThrows(
    () => parseManifest('{"digits": {"weights": {"1": 1e999}}}', "/f", ["digits"]),
    ConfigError,
    "weights.1",
  );
});

Deno.test("readManifest() reads the folder's file, or takes the defaults where there is none", async () => {
  const dir = await Deno.makeTempDir({ prefix: "with space " });
  const folder = new URL(`file://${encodeURI(dir)}/`);
  try {
    assertEquals((await readManifest(folder, ["digits"])).settingsOf("digits"), DEFAULTS);
    await Deno.writeTextFile(`${dir}/functions.json`, '{"digits": {"permissions": {"read": ["data"]}}}');
    const { permissions } = (await readManifest(folder, ["digits"])).settingsOf("digits");
    assertEquals(permissions, { read: [`${dir}/data`] });
    await assertRejects(() => readManifest(folder, []), ConfigError, `${dir}/functions.json`);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
