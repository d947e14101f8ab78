import { assertEquals, assertStringIncludes, assertThrows } from "tensorlet/assert";
import {
  checkPermissions,
  formatPermissions,
  permissionHint,
  type Permissions,
  type Refuse,
  toFlags,
  toWorkerPermissions,
} from "./permissions.ts";

const NOTHING = {
  read: false,
  write: false,
  net: false,
  env: false,
  ffi: false,
  run: false,
  sys: false,
  import: false,
};

const refuse: Refuse = {
  value: (field, got, wanted) => new RangeError(`${field} is ${JSON.stringify(got)}, wanted ${wanted}`),
  name: (within, kind, got, known) => new RangeError(`no ${kind} ${got} in ${within} among ${known.join()}`),
};

const check = (value: unknown) => checkPermissions(value, new URL("file:///srv/my%20functions/functions.json"), refuse);

const lacking = (text: string, name = "NotCapable") => Object.assign(new Error(text), { name });

Deno.test("checkPermissions() takes paths from the folder of functions.json, and programs only with a slash", () => {
  assertEquals(
    check({
      read: ["data", "/etc//hosts", "../other/", "a:b%20?#", "/", "."],
      write: [],
      ffi: ["lib/a,b.so"],
      run: ["git", "bin/tool", "./x"],
      net: true,
      env: false,
    }),
    {
      read: [
        "/srv/my functions/data",
        "/etc/hosts",
        "/srv/other",
        "/srv/my functions/a:b%20?#",
        "/",
        "/srv/my functions",
      ],
      write: [],
      ffi: ["/srv/my functions/lib/a,b.so"],
      run: ["git", "/srv/my functions/bin/tool", "/srv/my functions/x"],
      net: true,
      env: false,
    },
  );
});

Deno.test("checkPermissions() takes every kind of host, variable and name of the system", () => {
  const granted: Permissions = {
    net: [
      "example.com",
      "*.example.com",
      "my_host.:65535",
      "127.0.0.1:8080",
      "[::1]",
      "[fe80::1]:80",
      "10.0.0.0/8",
      "unix:/run/db.sock",
    ],
    import: ["gist.githubusercontent.com:443"],
    env: ["HOME", "AWS_*"],
    sys: ["hostname", "systemMemoryInfo"],
  };
  assertEquals(check(granted), granted);
});

for (
  const [value, text] of [
    ["none", 'permissions is "none", wanted an object'],
    [["read"], "wanted an object"],
    [{ nett: true }, "no permission nett in permissions among read,write,net,env,ffi,run,sys,import"],
    [JSON.parse('{"__proto__": true}'), "no permission __proto__"],
    [{ net: "example.com" }, 'permissions.net is "example.com", wanted true, false or a list of hosts'],
    [{ net: null }, "permissions.net is null"],
    [{ net: [80] }, "permissions.net is [80]"],
    [{ net: ["https://example.com"] }, "wanted true, false or a list of hosts"],
    [{ net: ["example.com/path"] }, "hosts"],
    [{ net: ["*"] }, "hosts"],
    [{ net: ["::1"] }, "hosts"],
    [{ net: [""] }, "hosts"],
    [{ net: ["a,b"] }, "hosts"],
    [{ net: ["unix:db.sock"] }, "hosts"],
    [{ net: ["example.com:65536"] }, "hosts"],
    [{ import: ["https://gist.githubusercontent.com"] }, "permissions.import"],
    [{ read: [""] }, "permissions.read is"],
    [{ write: ["file:///etc"] }, "wanted true, false or a list of paths"],
    [{ ffi: ["a\0"] }, "permissions.ffi"],
    [{ env: ["A=b"] }, "permissions.env"],
    [{ env: [""] }, "permissions.env"],
    [{ run: ["a,b"] }, "without a comma"],
    [{ sys: ["hostnam"] }, "no name hostnam in permissions.sys among ca,"],
  ] as const
) {
  Deno.test(`checkPermissions() refuses ${JSON.stringify(value)}`, () => {
    assertThrows(() => check(value), RangeError, text);
  });
}

Deno.test("toWorkerPermissions() names every kind, so that none is inherited", () => {
  assertEquals(toWorkerPermissions({}, []), NOTHING);
  assertEquals(toWorkerPermissions({ net: [], write: false }, ["/f/x"]), { ...NOTHING, read: ["/f/x"] });
  assertEquals(
    toWorkerPermissions({ read: ["/data"], env: ["HOME"], ffi: true }, ["/f/x"]),
    { ...NOTHING, read: ["/f/x", "/data"], env: ["HOME"], ffi: true },
  );
  assertEquals(toWorkerPermissions({ read: true }, ["/f/x"]), { ...NOTHING, read: true });
});

Deno.test("toFlags() says the same, and takes Deno's own list of hosts to import from away", () => {
  assertEquals(toFlags({}, []), ["--no-prompt", "--allow-import=none.invalid"]);
  assertEquals(
    toFlags({ read: ["/a b"], write: true, net: ["x:1", "y"], run: [], import: ["gist.githubusercontent.com"] }, [
      "/f/x",
    ]),
    [
      "--no-prompt",
      "--allow-read=/f/x,/a b",
      "--allow-write",
      "--allow-net=x:1,y",
      "--allow-import=gist.githubusercontent.com",
    ],
  );
});

Deno.test("toFlags() refuses a path with a comma, which no flag can say", () => {
  assertThrows(() => toFlags({ write: ["/a,b"] }, []), RangeError, 'Cannot allow a process to write "/a,b"');
});

Deno.test("formatPermissions() is short", () => {
  assertEquals(formatPermissions({}), "none");
  assertEquals(formatPermissions({ net: [], env: false }), "none");
  assertEquals(formatPermissions({}, ["/f/x", "/f/y"]), "read(own)");
  assertEquals(
    formatPermissions({ ffi: true, net: ["example.com"], read: ["/data"] }, ["/f/x"]),
    "read(own,/data) net(example.com) ffi",
  );
  assertEquals(formatPermissions({ read: true }, ["/f/x"]), "read");
});

for (
  const [error, text] of [
    [
      lacking('Requires read access to "/etc/passwd", run again with the --allow-read flag'),
      'Function "x" may not read "/etc/passwd": to allow it, ' +
      'add "permissions": { "read": ["/etc/passwd"] } to "x" in functions.json',
    ],
    [
      lacking('Requires read access to "data/../a,"b\n", run again with the --allow-read flag'),
      String.raw`may not read "/cwd/a,\"b\n": to allow it, add "permissions": { "read": ["/cwd/a,\"b\n"] } to`,
    ],
    [
      lacking('Requires net access to "example.com:80", run again with the --allow-net flag'),
      'may not use the network address "example.com:80": to allow it, add "permissions": { "net": ["example.com:80"] }',
    ],
    [
      lacking("Requires env access, run again with the --allow-env flag"),
      'may not use the whole environment: to allow it, add "permissions": { "env": true }',
    ],
    [
      lacking('Requires run access to "ls", run again with the --allow-run flag'),
      'may not run "ls": to allow it, add "permissions": { "run": ["ls"] }',
    ],
    [
      lacking('Requires run access to "./tool", run again with the --allow-run flag'),
      '"permissions": { "run": ["/cwd/tool"] }',
    ],
    [
      lacking('Requires net access to "unix:/run/a,b.sock", run again with the --allow-net flag'),
      'may not use the network address "unix:/run/a,b.sock": to allow it, add "permissions": { "net": true }',
    ],
    [
      lacking("Requires write access to <TMP>, run again with the --allow-write flag"),
      'may not write temporary files: to allow it, add "permissions": { "write": ["/tmp"] }',
    ],
    [
      lacking('Requires all access to "/proc/self/environ", run again with the --allow-all flag'),
      'may not open "/proc/self/environ": no permission allows it, only "isolation": "inline" does',
    ],
    [
      lacking(
        "Requires --allow-run permissions to spawn subprocess with LD_PRELOAD environment variable. Alternatively, ...",
      ),
      'may not run programs with LD_PRELOAD: to allow it, add "permissions": { "run": true }',
    ],
    [
      lacking(
        "Deno.symlinkSync() requires unscoped --allow-read and --allow-write permissions; path-scoped grants ...",
      ),
      'may not make symbolic links: to allow it, add "permissions": { "read": true, "write": true }',
    ],
    [
      lacking(
        'Requires import access to "gist.githubusercontent.com:443", run again with the --allow-import flag\n at x',
        "TypeError",
      ),
      'may not import from "gist.githubusercontent.com:443": to allow it, add "permissions": { "import": ["gist.githubusercontent.com:443"] }',
    ],
    [lacking("getaddrinfo EPERM example.com", "Error"), '"permissions": { "net": ["example.com"] }'],
    // As a worker that fails to start reports it.
    [
      'Uncaught (in worker "x") NotCapable: Requires sys access to "hostname", run again with the --allow-sys flag',
      'may not ask the system for its "hostname"',
    ],
    // A package that wraps it.
    [
      new Error("Cannot load", {
        cause: lacking('Requires ffi access to "/x.so", run again with the --allow-ffi flag'),
      }),
      'may not load native code from "/x.so"',
    ],
  ] as const
) {
  Deno.test(`permissionHint() explains ${JSON.stringify(typeof error === "string" ? error : error.message)}`, () => {
    assertStringIncludes(permissionHint(error, "x", { cwd: "/cwd" })!, text);
  });
}

Deno.test("permissionHint() keeps what is granted already", () => {
  const error = lacking('Requires net access to "b:80", run again with the --allow-net flag');
  assertStringIncludes(
    permissionHint(error, "x", { granted: { net: ["a"], ffi: true, env: [] } })!,
    'to allow it, make that "permissions": { "net": ["a", "b:80"], "ffi": true } of "x" in functions.json',
  );
});

Deno.test("permissionHint() is silent about any other error", () => {
  const others = [new Error("boom"), lacking("Can't escalate parent thread permissions"), undefined, null, 5, {}, "x"];
  for (const error of others) assertEquals(permissionHint(error, "x"), undefined);
  const circular = new Error("boom");
  circular.cause = circular;
  assertEquals(permissionHint(circular, "x"), undefined);
});
