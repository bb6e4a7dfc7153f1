// What the browser tests share: pages written by the program, opened in Chromium.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

export const web = join(dirname(fileURLToPath(import.meta.url)), "..");
export const root = join(web, "..");
export const program = process.env.ISOMER ?? join(root, "build", "isomer");
export const keptFolder = join(root, "study", "results");

export const folder = mkdtempSync(join(tmpdir(), "isomer-web-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

export const resultsIn = (path) =>
  readdirSync(path).filter((name) => name.endsWith(".json")).sort().map((name) => JSON.parse(readFileSync(join(path, name), "utf8")));

/** A page by `isomer report`; its status may be 1 when files are left out. */
export function report(name, ...arguments_) {
  const output = join(folder, name);
  const done = spawnSync(program, ["report", ...arguments_, "--output", output], { encoding: "utf8" });
  if (done.error || done.status > 1) throw new Error(`isomer report ${arguments_.join(" ")}: ${done.error ?? done.stderr}`);
  return output;
}

export const isomer = (...arguments_) => execFileSync(program, arguments_, { encoding: "utf8" });

/** Results that show every kind of figure, made of one that is kept. */
export function synthetic() {
  const base = JSON.parse(readFileSync(join(keptFolder, "softmax-rnn.truncation.json"), "utf8"));
  const path = join(folder, "synthetic");
  mkdirSync(path, { recursive: true });
  const put = (id, kind, series, more = {}, figure = {}) =>
    writeFileSync(join(path, `${id}.json`), JSON.stringify({ ...base, id, source: id.split(".")[0], ...more, figure: { kind, x: "the x", y: "the y", caption: `A caption of ${id}.`, series, ...figure } }));
  const names = (n) => Array.from({ length: n }, (_, i) => `preset-${i}`);
  const wave = (i, k) => Math.sin(i * 1.7 + k * 0.9);
  put("kinds.lines", "lines", names(12).map((name, i) => ({ name, points: [4, 8, 16, 32].map((x) => [x, wave(i, x), wave(i, x) - 0.1, wave(i, x) + 0.1]) })));
  put("kinds.loglog", "loglog", names(2).map((name, i) => ({ name, points: [1, 10, 100].map((x) => [x, i === 1 && x === 10 ? 0 : x ** -(i + 1), null, null]) })), { rule: "the log-log slope of preset-0" });
  put("kinds.bars", "bars", names(3).map((name, i) => ({ name, points: [1, 2, 4].map((x) => [x, wave(i, x), wave(i, x) - 0.2, wave(i, x) + 0.2]) })), { verdict: "undecided" });
  put("kinds.named-bars", "bars", names(7).map((name, i) => ({ name, points: [[0, wave(i, 0), null, null]] })));
  put("kinds.matrix", "matrix", names(5).map((name, i) => ({ name, points: [0, 1, 2, 3].map((x) => [x, wave(i, x), null, null]) })));
  put("kinds.square", "matrix", names(40).map((name, i) => ({ name, points: names(40).map((_, x) => [x, Math.max(0, i - x), null, null]) })));
  put("kinds.scatter", "scatter", names(30).map((name, i) => ({ name, points: [[2 ** (8 + (i % 11)), 0.5 + 0.5 * wave(i, 1), 0.4, 0.9]] })), { verdict: "fails" });
  put("kinds.cloud", "scatter", names(3).map((name, i) => ({ name, points: [1, 2, 3, 4, 5].map((k) => [wave(i, k), wave(k, i), null, null]) })));
  put("kinds.front", "scatter", names(20).map((name, i) => ({ name, group: i % 2 ? "delta" : "scan", points: [[2 ** (i % 9), 0.5 + 0.4 * wave(i, 2), 0.4, 0.9]] })), {}, { front: true });
  put("kinds.named", "bars", names(2).map((name, i) => ({ name, points: [0, 1].map((x) => [x, 0.5 + 0.1 * (i + x), null, null]) })), { published: [{ name: "preset-0, copying", value: 0.7, where: "table" }] }, { names: ["recall", "copying"] });
  put("kinds.same", "lines", names(2).map((name) => ({ name, points: [1, 2, 3].map((x) => [x, x * x, null, null]) })));
  const quantities = names(19).map((_, i) => ({ name: `quantity-${i}`, value: 1 + wave(i, 0), low: null, high: null, n: 1, unit: "nats" }));
  put("kinds.many", "bars", [], { rule: "quantity-0 minus quantity-1 is at most 1", measured: [...quantities, { ...quantities[0], name: "quantity-0 minus quantity-1", value: 0.1 }] }, { y: "nats" });
  put("kinds.unknown", "violin", [{ name: "only", points: [[1, 2, 2, 2], [2, null, null, null], [3, 4, 4, 4]] }]);
  put("kinds.hostile", "lines", [{ name: "</script><b>bold</b>", points: [[1, 1, 1, 1], [2, 2, 2, 2]] }], { statement: "</script><script>window.broken = true</script><img src=x onerror='window.broken = true'>" });
  writeFileSync(join(path, "newer.json"), JSON.stringify({ ...base, schema: 2 }));
  return path;
}

/** Limits of time are for a machine of its own; one that others use may be half as fast. */
export const SLOWER = 2;

let browser;
export async function chromiumBrowser() {
  browser ??= await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  return browser;
}
export const closeBrowser = () => browser?.close();

/** `isomer explore` on a port that is free. */
export async function explorer(...arguments_) {
  const child = spawn(program, ["explore", ...arguments_, "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  process.on("exit", () => child.kill("SIGKILL"));
  const line = await Promise.race([new Promise((resolve) => child.stdout.once("data", (data) => resolve(String(data)))), ended]);
  const url = /^http:\S+/.exec(line)?.[0];
  if (!url) throw new Error(`isomer explore ${arguments_.join(" ")}: ${line}`);
  const ask = async (look, question) => (await fetch(`${url}api/${look}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question) })).json();
  const stop = () => {
    child.kill("SIGINT");
    return ended;
  };
  return { url, ask, stop };
}

/** Numbers of elements that carry them. */
export const numbers = (locator) => locator.evaluateAll((all) => all.map((element) => Number(element.getAttribute("value"))));

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export async function expectAccessible(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes[0].html}`), [], what);
}

/** The file that a button gives. */
export async function savedFrom(page, place, name) {
  const [download] = await Promise.all([page.waitForEvent("download"), place.getByRole("button", { name }).click()]);
  return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
}

/** Nothing is wider than the window, and no text of a figure is cut off. */
export async function expectWhole(page, width) {
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
  const outside = await page.evaluate(() => [...document.querySelectorAll("svg.plot")].flatMap((svg) => {
    const box = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text")].filter((t) => {
      const r = t.getBoundingClientRect();
      return r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1;
    }).map((t) => `${svg.closest("figure")?.dataset.figure}: ${t.textContent}`);
  }));
  assert.deepEqual(outside, [], "text that is cut off");
}

/** Opens a file or the address of a server; `troubles` fills with errors and with requests for anything else. */
export async function open(path, { width = 1280, theme = "light", touch = false } = {}) {
  const page = await (await chromiumBrowser()).newPage({ viewport: { width, height: 900 }, colorScheme: theme, acceptDownloads: true, hasTouch: touch });
  const troubles = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && troubles.push(message.text()));
  page.on("pageerror", (error) => troubles.push(error.message));
  const address = path.startsWith("http:") ? path : pathToFileURL(path).href;
  page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || (path === address && request.url().startsWith(path)) || troubles.push(request.url()));
  await page.goto(address);
  await page.waitForFunction(() => !document.querySelector('[data-whole="false"]'));
  return { page, troubles };
}
