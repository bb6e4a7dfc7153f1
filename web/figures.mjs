// Writes docs/figures from study/results.   usage: node figures.mjs [--check]
import { build } from "esbuild";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url)), root = join(here, "..");

/** The claims whose figures README and docs show. */
const SHOWN = ["large-prompt.slope", "softmax-rnn.truncation", "inline.collapse-collinear"];

const { outputFiles } = await build({ entryPoints: [join(here, "src/static.tsx")], bundle: true, write: false, format: "esm", platform: "node", jsx: "automatic", jsxImportSource: "preact" });
const { pictureOf } = await import("data:text/javascript," + encodeURIComponent(outputFiles[0].text));

const folder = join(root, "docs/figures"), check = process.argv.includes("--check");
mkdirSync(folder, { recursive: true });
const stale = [];
for (const id of SHOWN) {
  const path = join(folder, `${id}.svg`), picture = pictureOf(JSON.parse(readFileSync(join(root, "study/results", `${id}.json`), "utf8")), 680);
  if (!existsSync(path) || readFileSync(path, "utf8") !== picture) stale.push(path);
  if (!check) writeFileSync(path, picture);
}
if (check && stale.length > 0) {
  console.error(`${stale.join(", ")}: not what study/results gives; run make figures`);
  process.exit(1);
}
