// The explorer in Chromium, answered by the program.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test, { after } from "node:test";
import { closeBrowser, expectAccessible, expectWhole, explorer, folder, isomer, numbers, open, savedFrom, SLOWER } from "./pages.mjs";

const server = await explorer("gla");
after(async () => {
  await closeBrowser();
  assert.equal(await server.stop(), 0);
});

const SENTENCE = "the cat sat on the mat and the dog sat by the cat";
const side = (page, name) => page.locator(`.panel[data-side="${name}"]`);
const pick = (page, name, preset) => side(page, name).getByLabel(name).selectOption(preset);
/** All that was asked for has been answered. */
async function settled(page) {
  await page.waitForFunction(() => document.querySelectorAll('.panel[data-settled="true"]').length === 2);
  await page.waitForTimeout(250);
  await page.waitForLoadState("networkidle");
}
async function openExplorer(options) {
  const opened = await open(server.url, options);
  await settled(opened.page);
  return opened;
}

test("two mixers stand beside each other, with the numbers of the program", async () => {
  const { page, troubles } = await openExplorer();
  for (const [name, preset] of [["left", "deltanet"], ["right", "taylor"], ["left", "mamba"], ["right", "s4d"]]) {
    await pick(page, name, preset);
    await settled(page);
    const panel = side(page, name), question = { preset, text: SENTENCE, token: 6 };
    const [view, curves, moved] = await Promise.all(["view", "curves", "influence"].map((look) => server.ask(look, question)));
    assert.equal(await panel.getAttribute("data-preset"), preset);
    const cells = await panel.locator("svg.plot").first().locator("rect title").allInnerTexts();
    assert.equal(cells.length, (13 * 14) / 2);
    const weights = await panel.locator(".sentence").first().locator("button .sr").allInnerTexts();
    assert.equal(weights[6].includes("weight"), true);
    assert.deepEqual(await numbers(panel.locator(".horizon data")), [view.view.horizon]);
    assert.deepEqual(await numbers(panel.locator(".moment data")), [curves.kept[6], curves.written[6], curves.norm[6]]);
    const figure = panel.locator(`figure[data-figure="${name}.influence"]`);
    const table = figure.getByRole("button", { name: /^data/ });
    if ((await table.getAttribute("aria-expanded")) === "false") await table.click();
    assert.deepEqual((await numbers(figure.locator("tbody data"))).filter((_, i) => i % 2 === 1), moved.moved);
  }
  assert.deepEqual(troubles, []);
});

test("the map follows a slider within 100 ms for 128 tokens", async (t) => {
  const { page, troubles } = await openExplorer();
  await page.getByRole("button", { name: "128 words" }).click();
  await pick(page, "left", "taylor");
  await pick(page, "right", "sliding-window");
  await settled(page);
  for (const [name, option] of [["left", "order"], ["right", "window"]]) {
    const panel = side(page, name), slider = panel.locator(`[data-option="${option}"] input`);
    const picture = () => panel.locator(".large-map canvas").evaluate((canvas) => canvas.toDataURL());
    let best = Infinity;
    for (const value of [1, 3, 5, 2, 4, 6, 1, 3, 5]) {
      if (best < 100 && value === 2) break;
      const before = await picture();
      await slider.fill(String(value));
      await settled(page);
      assert.equal(await panel.locator(`[data-option="${option}"] output`).innerText(), String(value));
      assert.notEqual(await picture(), before, `${option} ${value}`);
      best = Math.min(best, Number(await panel.getAttribute("data-ms")));
    }
    t.diagnostic(`${option}: answered in ${best} ms`);
    assert.ok(best < 100 * SLOWER, `${option}: answered in ${best} ms`);
    await panel.locator(".undo").click();
    await settled(page);
    assert.equal(await panel.locator(".undo").count(), 0);
  }
  await side(page, "left").locator(".large-map canvas").hover({ position: { x: 40, y: 300 } });
  assert.match(await side(page, "left").locator(".large-map .tip").innerText(), /^w\d+ ← w\d+: /);
  assert.deepEqual(troubles, []);
});

test("options that lose their meaning go, and those that are wrong are said", async () => {
  const { page } = await openExplorer();
  const panel = side(page, "left");
  await panel.locator('[data-option="position"] select').selectOption("rope");
  await settled(page);
  await panel.locator('[data-option="rope_base"] input').fill("100");
  await settled(page);
  await panel.locator('[data-option="position"] select').selectOption("none");
  await settled(page);
  assert.equal(await panel.locator('[data-option="rope_base"]').count(), 0);
  assert.equal(await panel.locator(".problem").count(), 0);
  await panel.locator('[data-option="heads"] input').fill("3");
  await panel.locator(".problem").first().waitFor();
  assert.match(await panel.locator(".problem").first().innerText(), /heads=2 is the nearest below/);
  assert.equal(await panel.locator("svg.plot").first().count(), 1, "the last map stays");
  await panel.locator('[data-option="heads"] input').fill("2");
  await settled(page);
  assert.equal(await panel.locator(".problem").count(), 0);
  assert.equal(await panel.locator(".heads button").count(), 2);
  await panel.locator(".heads button").nth(1).click();
  await settled(page);
  assert.equal(await panel.locator('.heads button[aria-pressed="true"]').innerText(), "head 2");
});

test("a mixer of whole sequences has a whole map and no state", async () => {
  const { page, troubles } = await openExplorer();
  const panel = side(page, "right"), question = { preset: "softmax", settings: { causal: "false" }, text: SENTENCE };
  assert.equal(await panel.locator(".state").count(), 1);
  await panel.locator('[data-option="causal"] input').uncheck();
  await settled(page);
  const { view } = await server.ask("view", question);
  const shown = await savedFrom(page, panel.locator(".tools").first(), /^CSV/);
  assert.deepEqual(shown.text.trim().split("\n").slice(1).map((line) => Number(line.split(",").at(-1))), view.matrix.flat());
  assert.equal(view.matrix.flat().length, 13 * 13);
  assert.equal(await panel.locator("svg.plot").first().locator("rect title").count(), 13 * 13);
  assert.equal(await panel.locator(".state").count(), 0);
  assert.match(await panel.locator(".part-4").innerText(), /There is none/);
  assert.match(await panel.locator(".horizon").innerText(), /whole sequence at once/);
  assert.match(await panel.locator(".change figcaption").innerText(), /before and behind it move/);
  assert.equal(await panel.locator(".problem").count(), 0);
  await expectAccessible(page, "whole sequences");
  assert.deepEqual(troubles, []);
});

test("the chosen row of a large map is marked as far as it goes", async () => {
  const { page, troubles } = await openExplorer();
  await page.getByRole("button", { name: "128 words" }).click();
  await settled(page);
  const panel = side(page, "right"), share = () => panel.locator(".large-map").evaluate((map) => map.querySelector(".row-mark").clientWidth / map.clientWidth);
  assert.ok(Math.abs((await share()) - 65 / 128) < 0.02);
  await panel.locator('[data-option="causal"] input').uncheck();
  await settled(page);
  assert.ok((await share()) > 0.98, "of whole sequences, the whole row");
  assert.deepEqual(troubles, []);
});

test("maps can leave out what a token is to itself", async () => {
  const { page, troubles } = await openExplorer();
  await pick(page, "left", "mamba");
  await settled(page);
  const panel = side(page, "left"), weights = () => panel.locator(".sentence").first().locator("button .sr").allInnerTexts();
  const before = await weights();
  await page.getByLabel("without a token's weight for itself").check();
  const after = await weights();
  assert.notEqual(before[6], after[6]);
  assert.match(after[6], /weight 0$/);
  assert.deepEqual(after.slice(0, 6), before.slice(0, 6), "the others are what they were");
  assert.deepEqual(troubles, []);
});

test("a name in an equation shows its values", async () => {
  const { page, troubles } = await openExplorer();
  const panel = side(page, "left"), { terms } = await server.ask("terms", { preset: "gla", text: SENTENCE, token: 6 });
  await panel.locator(".term", { hasText: /^k$/ }).first().hover();
  const shown = panel.locator(".term-values");
  assert.match(await shown.innerText(), /k at “and”, head 1 of 4: 16 numbers/);
  assert.deepEqual((await numbers(shown.locator(".numbers-line data"))), terms.k.values[0].slice(0, 8));
  await panel.locator(".term", { hasText: /^W_q$/ }).first().focus();
  assert.deepEqual(await numbers(shown.locator("data")), [terms.W_q.norm, terms.W_q.least, terms.W_q.largest]);
  await panel.locator(".term", { hasText: /^S$/ }).first().hover();
  assert.deepEqual(await numbers(shown.locator("data")), [terms.S.norm]);
  assert.deepEqual(troubles, []);
});

test("maps and eigenvalues are saved as they are", async () => {
  const { page, troubles } = await openExplorer();
  const panel = side(page, "left"), question = { preset: "gla", text: SENTENCE, token: 6 };
  const [{ view }, { eigenvalues }] = await Promise.all(["view", "state"].map((look) => server.ask(look, question)));
  const weights = (text) => text.trim().split("\n").slice(1).map((line) => Number(line.split(",").at(-1)));
  const small = await savedFrom(page, panel.locator(".tools").first(), /^CSV/);
  assert.equal(small.name, "left.gla.weights.csv");
  assert.deepEqual(weights(small.text), view.matrix.flat());
  const plane = panel.locator('figure[data-kind="plane"]');
  const rows = (await savedFrom(page, plane, /^CSV/)).text.trim().split("\n").slice(1).map((line) => line.split(",").slice(1, 3).map(Number));
  assert.deepEqual(rows, eigenvalues);
  await page.getByRole("button", { name: "128 words" }).click();
  await settled(page);
  const large = await savedFrom(page, panel.locator(".tools").first(), /^SVG/);
  assert.equal((large.text.match(/<title>/g) ?? []).length, (128 * 129) / 2, "a map that is drawn as pixels, too");
  assert.deepEqual(troubles, []);
});

test("a sentence is streamed token by token", async () => {
  const { page, troubles } = await openExplorer();
  const rows = () => side(page, "left").locator("svg.plot").first().locator("rect title").count();
  assert.equal(await rows(), 91);
  await page.locator("button.stream").click();
  await page.waitForFunction(() => document.querySelector(".reading output").textContent === "3 of 13");
  const soon = await rows();
  assert.ok(soon >= 3 && soon <= 15, `rows so far have ${soon} cells`);
  await page.waitForFunction(() => document.querySelector('.panel[data-side="left"] .moment')?.dataset.token === "4");
  await page.locator("button.stream").click();
  assert.equal(await rows(), 91);
  assert.deepEqual(troubles, []);
});

test("it can be used by keyboard", async () => {
  const { page } = await openExplorer();
  await page.locator(".reading .token input").focus();
  for (let i = 0; i < 3; ++i) await page.keyboard.press("ArrowLeft");
  await settled(page);
  assert.equal(await page.locator(".reading output").innerText(), "4 of 13");
  assert.equal(await side(page, "right").locator(".moment").getAttribute("data-token"), "3");
  await side(page, "left").locator(".sentence button").nth(1).focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".reading output").innerText(), "2 of 13");
});

test("another word moves the outputs behind it", async () => {
  const { page, troubles } = await openExplorer();
  const panel = side(page, "left");
  await panel.getByLabel("another word in its place").fill("bird");
  await settled(page);
  await panel.locator(".change figcaption", { hasText: "becomes “bird”" }).waitFor();
  assert.deepEqual(troubles, []);
});

test("texts that cannot be read and a program that is gone are said", async () => {
  const { page } = await openExplorer();
  await page.getByLabel("text", { exact: true }).fill(" ");
  await page.locator(".problem").first().waitFor();
  assert.match(await page.locator(".problem").first().innerText(), /expected words, got none/);
  const other = await explorer("softmax"), there = await open(other.url);
  await settled(there.page);
  await other.stop();
  await there.page.getByLabel("text", { exact: true }).fill("nobody hears this");
  await there.page.locator(".problem", { hasText: "Is isomer explore still running?" }).first().waitFor();
});

test("a trained run is shown with its layers, on its own tokens", async () => {
  const [text, recipe, run] = ["explore.txt", "explore.toml", "explored"].map((name) => join(folder, name)), read = "a cat sat";
  writeFileSync(text, "the cat sat on the mat and the dog sat by the cat\n".repeat(40));
  writeFileSync(recipe, `[model]\nwidth = 16\nlayers = ["gla", "softmax"]\n[mixer.all]\nheads = 2\n[task]\nname = "text"\npath = "${text}"\nlength = 32\n[train]\nsteps = 3\nbatch = 4\n`);
  isomer("train", recipe, "--out", run);
  const trained = await explorer(run, "--text", read), { page, troubles } = await open(trained.url);
  await settled(page);
  const panel = side(page, "left");
  await panel.getByRole("combobox", { name: /^layer/ }).selectOption("1");
  await settled(page);
  const { view } = await trained.ask("view", { text: read, layer: 1 });
  assert.deepEqual(await numbers(panel.locator(".horizon data")), [view.horizon]);
  assert.equal(await panel.getAttribute("data-preset"), "softmax");
  const words = await panel.locator(".sentence").first().locator("button").evaluateAll((all) => all.map((button) => button.firstChild.textContent));
  assert.deepEqual(words, [..."a␣cat␣sat"], "spaces are seen");
  assert.equal(await panel.locator(".option").count(), 0, "weights that were trained have no options");
  assert.equal(await side(page, "right").getAttribute("data-preset"), "softmax");
  await panel.locator(".layers summary").click();
  const all = panel.locator(".layers button");
  await all.nth(3).waitFor();
  assert.equal(await all.count(), 4, "two heads of two layers");
  await all.nth(1).click();
  await settled(page);
  assert.equal(await panel.getAttribute("data-preset"), "gla");
  assert.equal(await panel.locator('.layers button[aria-pressed="true"]').count(), 1);
  assert.deepEqual(troubles, []);
  assert.equal(await trained.stop(), 0);
});

for (const theme of ["light", "dark"])
  for (const width of [1280, 375])
    test(`accessible and within its width: ${theme}, ${width} px`, async () => {
      const { page, troubles } = await openExplorer({ theme, width });
      await pick(page, "right", "s4d");
      await settled(page);
      await side(page, "left").locator(".term").first().focus();
      await side(page, "left").locator("details summary").first().click();
      await expectWhole(page, width);
      await expectAccessible(page, `${theme} ${width}`);
      assert.deepEqual(troubles, []);
      await page.close();
    });
