// A real server, and Debian's Chromium that looks at its console.
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { DenoProcess, MAIN } from "../harness/server_process.ts";

/** What tests of their own need. */
export const FIXTURES: string = new URL("testdata", import.meta.url).pathname;
/** The project's functions. */
export const PROJECT: string = new URL("../../functions", import.meta.url).pathname;

/** The browser; Debian's package chromium has it. */
const EXECUTABLE = Deno.env.get("CHROMIUM") ?? "/usr/bin/chromium";
/** Where pictures of the pages go, to be looked at. */
const PICTURES = Deno.env.get("CONSOLE_PICTURES");

/** A server whose console is looked at. */
export interface Console extends AsyncDisposable {
  readonly origin: string;
  /** The gRPC listener's `host:port`. */
  readonly grpc: string;
}

/** Starts a server of a folder on free ports. */
export async function startConsole(functions: string, args: readonly string[] = []): Promise<Console> {
  const server = new DenoProcess([...MAIN, "--port", "0", "--http-port", "0", ...args, functions]);
  const [, grpc, origin] = await server.stdout.find(/grpc:\/\/(\S+) and (http:\/\/\S+)/);
  await server.stderr.find(/ready/);
  return { origin: origin!, grpc: grpc!, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

/** A page of a browser of its own, and what went wrong in it. */
export interface Visit extends AsyncDisposable {
  readonly page: Page;
  /** What the browser complained of: refused by the policy, not found, thrown. */
  readonly complaints: readonly string[];
  /** Keeps a picture of the page, if somebody wants to see it. */
  picture(name: string): Promise<void>;
}

/** Opens the console, at a function's page or at the overview. */
export async function visit(
  { origin }: Pick<Console, "origin">,
  fn = "",
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const browser: Browser = await chromium.launch({ executablePath: EXECUTABLE, args: ["--no-sandbox"] });
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const complaints: string[] = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", ({ message }) => complaints.push(message));
  await page.goto(`${origin}/${fn && `#/${encodeURIComponent(fn)}`}`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  return {
    page,
    complaints,
    async picture(name) {
      if (PICTURES !== undefined) await page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true });
    },
    [Symbol.asyncDispose]: () => browser.close(),
  };
}
