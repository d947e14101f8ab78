// Calls from the console: forms, images, streams, chats, and what goes wrong with them.
import { Buffer } from "node:buffer";
import type { Page } from "playwright-core";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "tensorlet/assert";
import { FIXTURES, PROJECT, startConsole, visit } from "./browser.ts";

const predict = (page: Page) => page.getByRole("button", { name: "Predict", exact: true }).click();
const stream = (page: Page) => page.getByRole("button", { name: "Stream", exact: true }).click();

/** Draws strokes on the board, in shares of its side. */
async function draw(page: Page, strokes: readonly (readonly (readonly [number, number])[])[]): Promise<void> {
  const { x, y, width, height } = (await page.getByRole("img", { name: /board/ }).boundingBox())!;
  for (const [first, ...rest] of strokes) {
    const at = ([px, py]: readonly [number, number]) => [x + px * width, y + py * height] as const;
    await page.mouse.move(...at(first!));
    await page.mouse.down();
    for (const point of rest) await page.mouse.move(...at(point), { steps: 8 });
    await page.mouse.up();
  }
}

const SEVEN = [[[0.2, 0.1], [0.5, 0.1], [0.3, 0.6]]] as const; // small, and in a corner: it is centred
const ONE = [[[0.5, 0.2], [0.5, 0.8]]] as const;

const best = async (page: Page) => {
  await page.getByRole("list", { name: "Classes" }).waitFor();
  return await page.locator(".best .class").innerText();
};

Deno.test("console: a tensor in any dtype is called as it was typed", async () => {
  await using server = await startConsole(PROJECT);
  await using seen = await visit(server, "affine@1");
  const { page } = seen;
  const input = page.getByLabel("input", { exact: true });
  await input.fill("[[1, 2], [3, 4]]");
  await predict(page);
  assertEquals(await page.locator(".output pre").innerText(), "[[12, 14],\n [16, 18]]");
  await page.getByLabel("dtype").selectOption("int64");
  await input.fill("[9007199254740993]");
  await predict(page);
  await page.getByText('["18014398509481996"]').waitFor();
  for (
    const [text, problem] of [["[1, oops]", "wanted a tensor in JSON"], ["[[1], [2, 3]]", "not of the same length"]]
  ) {
    await input.fill(text!);
    await predict(page);
    assertStringIncludes(await page.getByRole("alert").filter({ hasText: problem! }).innerText(), "input");
  }
  await page.getByLabel("dtype").selectOption("uint8");
  await input.fill("[300]");
  await predict(page);
  await page.getByRole("alert").filter({ hasText: "element 0 is 300, wanted uint8" }).waitFor();
});

Deno.test("console: inputs by name, of all kinds, and one left out", async () => {
  await using server = await startConsole(FIXTURES);
  await using seen = await visit(server, "named@1");
  const { page } = seen;
  await page.getByLabel("ids", { exact: true }).fill("[[1, 2], [3, 4]]");
  await page.getByLabel("flags", { exact: true }).fill("[true, false]");
  await page.getByLabel("words", { exact: true }).fill('["a", "<b>"]');
  await predict(page);
  const answer = page.getByRole("region", { name: "Answer" });
  await answer.getByText("[true, false]").waitFor();
  assertStringIncludes(await answer.innerText(), "<b>");
});

for (const fn of ["digits@1", "image_classifier_v1@1"]) {
  Deno.test(`console: ${fn} reads a digit that is drawn`, async () => {
    await using server = await startConsole(PROJECT);
    await using seen = await visit(server, fn);
    const { page } = seen;
    await draw(page, SEVEN);
    await predict(page);
    assertEquals(await best(page), "7");
    await page.getByRole("button", { name: "Clear" }).click();
    await draw(page, ONE);
    await predict(page);
    await page.locator(".best .class", { hasText: "1" }).waitFor();
  });

  Deno.test(`console: ${fn} reads an image that is dropped, or chosen`, async () => {
    await using server = await startConsole(PROJECT);
    await using seen = await visit(server, fn);
    const { page } = seen;
    const png = await page.evaluate(`(() => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 300, height: 200 });
      const context = canvas.getContext("2d");
      context.fillRect(0, 0, 300, 200);
      Object.assign(context, { strokeStyle: "white", lineWidth: 16, lineCap: "round" });
      context.stroke(new Path2D("M 115 50 L 185 50 L 140 150"));
      return canvas.toDataURL("image/png");
    })()`) as string;
    await page.evaluate(`(async () => {
      const blob = new Blob([Uint8Array.fromBase64(${JSON.stringify(png.slice(png.indexOf(",") + 1))})]);
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([blob], "seven.png", { type: "image/png" }));
      const drop = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
      document.querySelector(".image").dispatchEvent(drop);
    })()`);
    await page.waitForFunction(`(() => {
      const preview = document.querySelector(".preview");
      const { data } = preview.getContext("2d").getImageData(0, 0, preview.width, preview.height);
      return data.some((value, i) => i % 4 < 3 && value > 0);
    })()`);
    await predict(page);
    assertEquals(await best(page), "7");
    const choose = page.getByLabel("Choose an image");
    await choose.setInputFiles({
      name: "note.txt",
      mimeType: "text/plain",
      buffer: Buffer.from("no"),
    });
    await page.getByText("no image that the browser can read").waitFor();
  });
}

Deno.test("console: a stream comes with its pace, and Stop ends the function", async () => {
  await using server = await startConsole(FIXTURES);
  await using seen = await visit(server, "talker@2");
  const { page } = seen;
  const answer = page.getByRole("region", { name: "Answer" });
  await page.getByLabel("prompt").fill("one two three");
  await stream(page);
  await answer.getByText("one two three").waitFor();
  assertMatch(
    await answer.getByLabel("Figures").innerText(),
    /first token\s+[\d.]+ m?s\s+tokens\s+3\s+tokens\/s\s+[\d,.]+/,
  );
  await page.getByLabel("prompt").fill("endless");
  await stream(page);
  await answer.getByText("0 1 2 3").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByLabel("prompt").fill("report");
  for (;;) {
    await stream(page);
    await answer.getByText(/^stopped \d/).waitFor();
    if (await answer.getByText("stopped 1").count() > 0) break;
  }
  await page.getByLabel("prompt").fill("fail");
  await stream(page);
  await page.getByRole("alert").filter({ hasText: "There is no room" }).waitFor();
});

Deno.test("console: conversations have sessions, which a reload keeps; a failure is a message", async () => {
  await using server = await startConsole(FIXTURES);
  await using seen = await visit(server, "talker@2");
  const { page } = seen;
  const open = () => page.getByRole("tab", { name: "Chat" }).click();
  const log = page.getByRole("log");
  const say = async (text: string) => {
    await page.getByLabel("Message", { exact: true }).fill(text);
    await page.keyboard.press("Enter");
  };
  await open();
  await say("count");
  await log.getByText("turn 1", { exact: true }).waitFor();
  await say("count");
  await log.getByText("turn 2", { exact: true }).waitFor();
  await page.getByRole("button", { name: "New session" }).click();
  await say("count");
  await log.getByText("turn 1", { exact: true }).waitFor();
  await say("fail");
  await log.getByText("There is no room").waitFor();
  await say("endless");
  await log.getByText("0 1 2 3").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("button", { name: "Send" }).waitFor();
  await page.reload();
  await open();
  const sessions = page.getByRole("complementary", { name: "Sessions" }).getByRole("listitem");
  assertEquals(await sessions.count(), 2);
  await sessions.first().getByRole("button").click();
  await say("count");
  await log.getByText("turn 3", { exact: true }).waitFor();
});

Deno.test("console: names, tokens, outputs and failures are text, whatever they hold", async () => {
  await using server = await startConsole(FIXTURES);
  await using seen = await visit(server, "hostile@1");
  const { page, complaints } = seen;
  const html = page.getByText("<img src=x onerror=");
  await html.first().waitFor();
  await predict(page);
  await page.locator(".output").getByText("<script>").waitFor();
  await page.getByLabel("mode").selectOption("fail");
  await predict(page);
  await page.getByRole("alert").getByText("<script>").waitFor();
  await page.getByRole("tab", { name: "Stream" }).click();
  await stream(page);
  await page.getByRole("region", { name: "Answer" }).getByText("<script>").waitFor();
  await page.getByRole("tab", { name: "Chat" }).click();
  await page.getByLabel("Message", { exact: true }).fill("<b>hello</b>");
  await page.keyboard.press("Enter");
  await page.getByRole("log").getByText("<script>").waitFor();
  assertEquals(await page.locator("main img:not([role]), main script, .message b").count(), 0);
  assert((await page.title()).startsWith("hostile"));
  assertEquals(complaints.filter((text) => !text.includes("400")), []);
});

Deno.test("console: a page of another origin cannot call, read or frame it", async () => {
  await using server = await startConsole(FIXTURES);
  await using other = await startConsole(FIXTURES);
  await using seen = await visit(other);
  const result = await seen.page.evaluate(`(async () => {
    const url = ${JSON.stringify(server.origin)};
    const request = { method: "POST", body: "{}", mode: "no-cors" };
    return await fetch(url + "/console/api/functions/talker/stream", request).then((r) => r.type, (e) => e.name);
  })()`);
  assertEquals(result, "TypeError"); // this page's own policy
  const headers = { origin: other.origin, "content-type": "application/json" };
  const url = `${server.origin}/console/api/functions/talker/stream`;
  const response = await fetch(url, { method: "POST", headers, body: "{}" });
  assertEquals(response.status, 403);
  await response.body?.cancel();
});

Deno.test("console: Copy puts the code that is shown on the clipboard", async () => {
  await using server = await startConsole(PROJECT);
  await using seen = await visit(server, "affine@1", { permissions: ["clipboard-read", "clipboard-write"] });
  const { page } = seen;
  await page.getByRole("tab", { name: "grpcurl" }).click();
  await page.getByRole("button", { name: "Copy" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const copied = await page.evaluate("navigator.clipboard.readText()");
  assertEquals(copied, await page.locator(".code pre").textContent());
});
