// What the host lets a function do: checks what functions.json grants, and says it as Deno wants to hear it. No I/O.
import { isObject } from "../core/json.ts";

/** The kinds of access that can be granted, as Deno names them. */
export type PermissionKind = "read" | "write" | "net" | "env" | "ffi" | "run" | "sys" | "import";

/** All of a kind, none of it, or what is listed. */
export type Grant = boolean | readonly string[];

/** What a function is granted; a kind that is missing is not. Paths are absolute. */
export type Permissions = { readonly [K in PermissionKind]?: Grant };

/** Makes the errors of a check, which knows neither the file nor the function that it is about. */
export interface Refuse {
  /** The error of a value. */
  value(field: string, got: unknown, wanted: string): Error;
  /** The error of a name that does not exist, `within` a field or the function itself. */
  name(within: string | undefined, kind: string, got: string, known: readonly string[]): Error;
}

/** Every kind, in the order of listings. */
export const PERMISSION_KINDS: readonly PermissionKind[] = [
  "read",
  "write",
  "net",
  "env",
  "ffi",
  "run",
  "sys",
  "import",
];

const PATHS: readonly PermissionKind[] = ["read", "write", "ffi"];

// Deno refuses others when a worker starts, which is late.
const SYS_NAMES = [
  "ca",
  "cpus",
  "getegid",
  "getPriority",
  "gid",
  "homedir",
  "hostname",
  "inspector",
  "loadavg",
  "networkInterfaces",
  "osRelease",
  "osUptime",
  "setegid",
  "seteuid",
  "setgid",
  "setPriority",
  "setuid",
  "statfs",
  "systemMemoryInfo",
  "uid",
  "userInfo",
  "username",
];

interface TextRule {
  readonly wanted: string;
  readonly fits: (text: string) => boolean;
}

const PATH: TextRule = { wanted: "paths", fits: (text) => /^(?!file:)[^\0]+$/.test(text) };
const HOST: TextRule = {
  wanted: 'hosts such as "example.com", "*.example.com", "127.0.0.1:8080", "[::1]:8080" or "10.0.0.0/8"',
  fits: isHost,
};
// A comma separates the texts of a flag.
const TEXT_RULES: Readonly<Record<PermissionKind, TextRule>> = {
  read: PATH,
  write: PATH,
  ffi: PATH,
  net: HOST,
  import: HOST,
  env: { wanted: 'names of variables, or their beginning and "*"', fits: (text) => /^[^\0,=]+$/.test(text) },
  run: { wanted: "names or paths of programs, without a comma", fits: (text) => /^[^\0,]+$/.test(text) },
  sys: { wanted: "names", fits: (text) => text !== "" },
};

function isHost(text: string): boolean {
  if (/^(unix:\/[^\0,]+|vsock:[^\0,]+)$/.test(text)) return true;
  const match = /^(?:(?:\*\.)?[\w.-]+|\[[\da-f:.]+\]|[\d.]+\/\d+)(?::(\d+))?$/i.exec(text);
  return match !== null && Number(match[1] ?? 0) <= 65_535;
}

/** Checks what functions.json grants; paths are meant from `base`. Throws what `refuse` makes. */
export function checkPermissions(value: unknown, base: URL, refuse: Refuse): Permissions {
  if (!isObject(value)) throw refuse.value("permissions", value, 'an object such as { "net": ["example.com"] }');
  const granted: { -readonly [K in keyof Permissions]: Permissions[K] } = {};
  for (const [kind, grant] of Object.entries(value)) {
    if (!isKind(kind)) throw refuse.name("permissions", "permission", kind, PERMISSION_KINDS);
    granted[kind] = checkGrant(kind, grant, base, refuse);
  }
  return granted;
}

function isKind(text: string): text is PermissionKind {
  return (PERMISSION_KINDS as readonly string[]).includes(text);
}

function checkGrant(kind: PermissionKind, grant: unknown, base: URL, refuse: Refuse): Grant {
  const field = `permissions.${kind}`;
  const { wanted, fits } = TEXT_RULES[kind];
  if (typeof grant === "boolean") return grant;
  if (!Array.isArray(grant)) throw refuse.value(field, grant, `true, false or a list of ${wanted}`);
  return grant.map((text: unknown) => {
    if (typeof text !== "string" || !fits(text)) throw refuse.value(field, grant, `true, false or a list of ${wanted}`);
    if (kind === "sys" && !SYS_NAMES.includes(text)) throw refuse.name(field, "name", text, SYS_NAMES);
    return isPath(kind, text) ? resolvePath(text, base) : text;
  });
}

// A program without a slash is looked up in PATH.
function isPath(kind: PermissionKind, text: string): boolean {
  return PATHS.includes(kind) || kind === "run" && text.includes("/");
}

/** The URL of a path, which is meant from `base` unless it begins with a slash. */
export function pathToUrl(path: string, base: URL): URL {
  return new URL(path.replaceAll(/\/+/g, "/").split("/").map(encodeURIComponent).join("/"), base);
}

function resolvePath(path: string, base: URL): string {
  const resolved = decodeURIComponent(pathToUrl(path, base).pathname);
  return resolved.length > 1 ? resolved.replace(/\/$/, "") : resolved;
}

/** What a worker's `deno.permissions` is. Every kind is in it: one that is missing may be the parent's. */
export function toWorkerPermissions(granted: Permissions, ownAssets: readonly string[]): Deno.PermissionOptionsObject {
  return Object.fromEntries(grants(granted, ownAssets).map(([kind, grant]) => [kind, copy(grant)]));
}

// Stands for "nothing" where leaving the flag out means Deno's own list of hosts; no such name can exist (RFC 2606).
const NO_HOST = "none.invalid";

/** The same as flags of `deno run`. Throws `RangeError` for a path with a comma: Deno 2.9.6 knows no way to say one. */
export function toFlags(granted: Permissions, ownAssets: readonly string[]): string[] {
  const flags = grants(granted, ownAssets).flatMap(([kind, grant]) => {
    if (grant === true) return [`--allow-${kind}`];
    if (grant === false) return kind === "import" ? [`--allow-import=${NO_HOST}`] : [];
    const split = grant.find((text) => text.includes(","));
    if (split !== undefined) {
      throw new RangeError(`Cannot allow a process to ${kind} "${split}": its path has a comma, wanted one without`);
    }
    return [`--allow-${kind}=${grant.join(",")}`];
  });
  return ["--no-prompt", ...flags];
}

function grants(granted: Permissions, ownAssets: readonly string[]): [PermissionKind, Grant][] {
  return PERMISSION_KINDS.map((kind) => {
    if (granted[kind] === true) return [kind, true];
    const texts = [...kind === "read" ? ownAssets : [], ...listed(granted[kind])];
    return [kind, texts.length > 0 ? texts : false];
  });
}

function listed(grant: Grant | undefined): readonly string[] {
  return typeof grant === "object" ? grant : [];
}

function copy(grant: Grant): boolean | string[] {
  return typeof grant === "boolean" ? grant : [...grant];
}

/** A short text for listings: `read(own,/srv/data) net(example.com) ffi`, `none`. */
export function formatPermissions(granted: Permissions, ownAssets: readonly string[] = []): string {
  const own = ownAssets.length > 0 ? ["own"] : [];
  const parts = grants(granted, own).flatMap(([kind, grant]) => {
    if (grant === false) return [];
    return grant === true ? [kind] : [`${kind}(${grant.join(",")})`];
  });
  return parts.length > 0 ? parts.join(" ") : "none";
}

// What a function may not do: with the thing that it wanted, and with all of the kind.
const DEEDS: Readonly<Record<PermissionKind, readonly [one: string, all: string]>> = {
  read: ["read", "read any file"],
  write: ["write", "write any file"],
  net: ["use the network address", "use the network"],
  env: ["use the environment variable", "use the whole environment"],
  ffi: ["load native code from", "use native memory"],
  run: ["run", "control other processes"],
  sys: ["ask the system for its", "ask the system"],
  import: ["import from", "import from any host"],
};

/** What a function lacked: what it may not do, and what would have to be granted, if anything can be. */
interface Lack {
  readonly deed: string;
  readonly needs: Permissions | undefined;
}

/** The options of {@linkcode permissionHint}. */
export interface HintOptions {
  /** What the function is granted already, so that the hint keeps it. @default {{}} */
  readonly granted?: Permissions;
  /** The folder that the function's relative paths are meant from. @default the process's */
  readonly cwd?: string;
}

/**
 * What to write into functions.json so that a function may do what it was refused; `undefined` for any other error.
 * Goes by Deno's text, because packages wrap the error, imports throw a TypeError, and workers only report a text.
 */
export function permissionHint(error: unknown, name: string, options: HintOptions = {}): string | undefined {
  const lack = lackOf(textOf(error), options.cwd);
  if (!lack) return undefined;
  const refused = `Function ${JSON.stringify(name)} may not ${lack.deed}`;
  if (!lack.needs) return `${refused}: no permission allows it, only "isolation": "inline" does`;
  const { granted = {} } = options;
  const line = `"permissions": ${formatGrants(union(granted, lack.needs))}`;
  return Object.keys(granted).length > 0
    ? `${refused}: to allow it, make that ${line} of ${JSON.stringify(name)} in functions.json`
    : `${refused}: to allow it, add ${line} to ${JSON.stringify(name)} in functions.json`;
}

// Causes are part of it: a function may have said what it was doing.
function textOf(error: unknown): string {
  const texts: string[] = [];
  for (let each = error; each !== undefined && each !== null && texts.length < 5;) {
    const { message, cause } = each as { readonly message?: unknown; readonly cause?: unknown };
    texts.push(typeof each === "string" ? each : `${message}`);
    each = cause;
  }
  return texts.join("\n");
}

function lackOf(text: string, cwd: string | undefined): Lack | undefined {
  const access = /Requires (\w+) access(?: to (?:"([^]+?)"|<\w+>))?, run again with the --allow-\1 flag/.exec(text);
  if (access) {
    const [whole, kind, target] = access as unknown as [string, string, string | undefined];
    if (isKind(kind)) return whole.includes("access to <TMP>") ? TEMPORARY : lackOfKind(kind, target, cwd);
    // Files that tell of the process or reach the machine want everything granted.
    return { deed: target === undefined ? "do everything" : `open ${JSON.stringify(target)}`, needs: undefined };
  }
  if (text.includes("requires unscoped --allow-read and --allow-write")) {
    return { deed: "make symbolic links", needs: { read: true, write: true } };
  }
  const variable = /Requires --allow-run permissions to spawn subprocess with (\w+)/.exec(text)?.[1];
  if (variable !== undefined) return { deed: `run programs with ${variable}`, needs: { run: true } };
  // So node:net and node:http say it, without a port.
  const host = /getaddrinfo EPERM (\S+)/.exec(text)?.[1];
  return host === undefined ? undefined : lackOfKind("net", host, cwd);
}

// Deno does not name the folder; it is another where the variable TMPDIR says so.
const TEMPORARY: Lack = { deed: "write temporary files", needs: { write: ["/tmp"] } };

function lackOfKind(kind: PermissionKind, target: string | undefined, cwd: string | undefined): Lack {
  const [one, all] = DEEDS[kind];
  if (target === undefined) return { deed: all, needs: { [kind]: true } };
  const text = isPath(kind, target) ? resolvePath(target, pathToUrl(`${cwd ?? Deno.cwd()}/`, ROOT)) : target;
  // What no list can name, such as a program with a comma, needs all of its kind.
  return { deed: `${one} ${JSON.stringify(text)}`, needs: { [kind]: TEXT_RULES[kind].fits(text) ? [text] : true } };
}

/** Where absolute paths begin. */
export const ROOT: URL = new URL("file:///");

function union(granted: Permissions, more: Permissions): Permissions {
  return Object.fromEntries(PERMISSION_KINDS.map((kind) => {
    const all = granted[kind] === true || more[kind] === true;
    return [kind, all || [...new Set([...listed(granted[kind]), ...listed(more[kind])])]];
  }));
}

function formatGrants(granted: Permissions): string {
  const parts = grants(granted, []).flatMap(([kind, grant]) => {
    if (grant === false) return [];
    return [`"${kind}": ${grant === true ? grant : `[${grant.map((text) => JSON.stringify(text)).join(", ")}]`}`];
  });
  return `{ ${parts.join(", ")} }`;
}
