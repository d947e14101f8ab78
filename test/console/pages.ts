// What somebody sees who opens the console, with whatever device and eyes.
import axe, { type AxeResults } from "axe-core";
import type { BrowserContextOptions, Page } from "playwright-core";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "tensorlet/assert";
import { FIXTURES, PROJECT, startConsole, visit } from "./browser.ts";

const LOOKS: Readonly<Record<string, BrowserContextOptions>> = {
  light: { colorScheme: "light" },
  dark: { colorScheme: "dark" },
  phone: { colorScheme: "light", viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true },
};

async function assertAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate("axe.run()") as AxeResults;
  assertEquals(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`), []);
}

async function assertFits(page: Page): Promise<void> {
  assertEquals(await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0);
}

for (const [name, look] of Object.entries(LOOKS)) {
  Deno.test(`console, ${name}: every page is accessible, fits, and has the browser complain of nothing`, async () => {
    await using server = await startConsole(PROJECT);
    await using seen = await visit(server, "", look);
    const { page, complaints } = seen;
    const check = async (what: string) => {
      await seen.picture(`${name}-${what}`);
      await assertAccessible(page);
      await assertFits(page);
    };
    await page.getByText("MB").first().waitFor();
    await check("overview");
    const open = async (fn: string) => {
      if (name === "phone") await page.getByRole("button", { name: "Functions" }).click();
      await page.getByRole("navigation").getByRole("link", { name: fn }).click();
      await page.getByRole("heading", { level: 1, name: fn }).waitFor();
    };
    await open("affine");
    await page.getByRole("button", { name: "Predict", exact: true }).click();
    await page.getByText("Answered in").waitFor();
    await check("affine");
    await open("digits");
    await page.getByRole("button", { name: "Predict", exact: true }).click();
    await page.getByRole("list", { name: "Classes" }).waitFor();
    await check("digits");
    await open("austen");
    await page.getByLabel("seed").fill("7");
    await page.getByRole("button", { name: "Stream", exact: true }).click();
    await page.getByText("Ended").waitFor();
    await check("stream");
    await page.getByRole("tab", { name: "Chat" }).click();
    await page.getByLabel("Message", { exact: true }).fill("Good morning, Mr. Knightley.");
    await page.keyboard.press("Enter");
    await page.getByText(/tokens, the first after/).waitFor();
    await check("chat");
    assertEquals(complaints, []);
  });
}

Deno.test("console: the overview tells what is served, and plots what it does", async () => {
  await using server = await startConsole(FIXTURES);
  await using seen = await visit(server);
  const { page } = seen;
  const row = page.getByRole("row", { name: /talker/ });
  assertMatch(await row.innerText(), /talker 2\s+idle\s+stream, chat\s+0\s+0/);
  for (let i = 0; i < 3; i++) {
    const body = JSON.stringify({ params: { prompt: "one two" } });
    const headers = { "content-type": "application/json" };
    await (await fetch(`${server.origin}/console/api/functions/talker/stream`, { method: "POST", headers, body }))
      .text();
  }
  await page.getByRole("row", { name: /talker.*stream, chat\s+3\s+0\s+\d/ }).waitFor();
  assertEquals(await page.locator("figure canvas").count(), 4);
  // A drawn line has more than the grid's colours.
  const isDrawn = await page.locator("figure canvas").first().evaluate((canvas: unknown) => {
    const { width, height } = canvas as { width: number; height: number };
    // deno-lint-ignore no-explicit-any
    const { data } = (canvas as any).getContext("2d").getImageData(0, 0, width, height);
    const colors = new Set<string>();
    for (let i = 0; i < data.length; i += 4) colors.add(`${data[i]} ${data[i + 1]} ${data[i + 2]}`);
    return colors.size > 3;
  });
  assert(isDrawn);
});

Deno.test("console: one of several processes says that its figures are its own", async () => {
  await using server = await startConsole(FIXTURES, ["--processes", "2"]);
  await using seen = await visit(server);
  assertMatch(await seen.page.getByText(/Process \d of 2/).innerText(), /this process alone/);
});

Deno.test("console: by keyboard alone from the overview to an answer", async () => {
  await using server = await startConsole(PROJECT);
  await using seen = await visit(server);
  const { page } = seen;
  const focused = () => page.evaluate("document.activeElement.textContent.trim() || document.activeElement.tagName");
  const tabTo = async (text: RegExp) => {
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press("Tab");
      if (text.test(String(await focused()))) return;
    }
    throw new Error(`Tab never comes to ${text}`);
  };
  await tabTo(/^To the content$/);
  await tabTo(/^digits/);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "digits" }).waitFor();
  const board = page.getByRole("img", { name: /A board to draw on/ });
  await tabTo(/^CANVAS$/);
  await page.keyboard.press("Space");
  for (let i = 0; i < 8; i++) await page.keyboard.press("ArrowDown");
  assertStringIncludes(String(await board.getAttribute("aria-label")), "down");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("listitem").filter({ has: page.locator(".share") }).first().waitFor();
  assertEquals(await page.locator(".best .class").innerText(), "1");
  // The arrow keys choose among tabs.
  await tabTo(/^Python$/);
  await page.keyboard.press("ArrowRight");
  assertEquals(await focused(), "TypeScript");
  assertStringIncludes(await page.locator(".code pre").innerText(), "tensorlet/client");
  const outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle");
  assertEquals(outline, "solid");
});

Deno.test("console: what moves stands still for who wants that", async () => {
  await using server = await startConsole(FIXTURES);
  await using seen = await visit(server, "talker@2", { reducedMotion: "reduce" });
  await seen.page.getByLabel("prompt").fill("endless");
  await seen.page.getByRole("button", { name: "Stream", exact: true }).click();
  await seen.page.locator(".text.running").waitFor();
  const cursor = "getComputedStyle(document.querySelector('.text.running'), '::after').animationName";
  assertEquals(await seen.page.evaluate(cursor), "none");
});

Deno.test("console: a page finds its server again, and a function that is gone is said to be", async () => {
  await using server = await startConsole(FIXTURES);
  await using seen = await visit(server, "nobody@1");
  await seen.page.getByText("There is no function “nobody@1”").waitFor();
  await server[Symbol.asyncDispose]();
  await seen.page.getByText("No connection; trying again").waitFor();
});
