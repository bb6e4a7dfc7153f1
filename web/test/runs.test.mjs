// The page of runs in Chromium.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import test, { after, before } from "node:test";
import { closeBrowser, expectAccessible, folder, isomer, open, report } from "./pages.mjs";

const RECIPE = `
[model]
width = 16
layers = ["gla", "softmax"]
[mixer.all]
heads = 2
[task]
name = "mqar"
vocabulary = 64
length = 32
pairs = 2
[train]
steps = 30
batch = 8
log_every = 1
eval_every = 10
eval_examples = 16
`;

let path;
before(() => {
  writeFileSync(`${folder}/recipe.toml`, RECIPE);
  for (const [name, lr] of [["slow", "1e-4"], ["fast", "1e-2"]]) isomer("train", `${folder}/recipe.toml`, "--out", `${folder}/runs/${name}`, "--set", `train.lr=${lr}`);
  path = report("runs.html", `${folder}/runs/slow`, `${folder}/runs/fast`);
});
after(closeBrowser);

const curve = (page, figure) => page.locator(`figure[data-figure="${figure}"] svg.plot path[fill="none"]`);

test("curves of the runs stand beside each other", async () => {
  const { page, troubles } = await open(path);
  assert.deepEqual(await page.locator("tr[data-run]").evaluateAll((rows) => rows.map((row) => row.dataset.run)), ["slow", "fast"]);
  for (const figure of ["loss", "eval-loss", "example-accuracy", "grad-norm", "lr", "tokens-per-s"])
    assert.ok((await curve(page, figure).count()) >= 2, figure);
  const lines = readFileSync(`${folder}/runs/slow/metrics.jsonl`, "utf8").trim().split("\n").map((line) => JSON.parse(line)).filter((line) => "loss" in line);
  await page.locator('figure[data-figure="loss"]').getByRole("button", { name: /^data/ }).click();
  const shown = await page.locator('figure[data-figure="loss"] tbody tr').evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll("data")].map((d) => Number(d.value))));
  assert.deepEqual(shown.slice(0, lines.length), lines.map((line) => [line.step, line.loss]));
  assert.deepEqual(troubles, []);
});

test("smoothing, seconds, logarithms and hiding change the curves", async () => {
  const { page, troubles } = await open(path);
  const drawn = () => curve(page, "loss").first().getAttribute("d");
  let last = await drawn();
  for (const change of [
    () => page.getByLabel("smoothing").fill("0.9"),
    () => page.getByLabel("along").selectOption("seconds"),
    () => page.getByLabel("logarithmic losses and norms").check(),
  ]) {
    await change();
    const now = await drawn();
    assert.notEqual(now, last);
    last = now;
  }
  const before = await curve(page, "lr").count();
  await page.getByRole("checkbox", { name: "slow" }).uncheck();
  assert.ok((await curve(page, "lr").count()) <= before);
  assert.equal(await page.locator('figure[data-figure="lr"] svg.plot').getByText("slow").count(), 0);
  await page.getByRole("checkbox", { name: "fast" }).uncheck();
  assert.equal(await page.locator("figure").count(), 0);
  assert.deepEqual(troubles, []);
});

for (const theme of ["light", "dark"])
  for (const width of [1280, 375])
    test(`accessible and within its width: ${theme}, ${width} px`, async () => {
      const { page } = await open(path, { theme, width });
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
      await expectAccessible(page, `${theme} ${width}`);
    });
