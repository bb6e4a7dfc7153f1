// Writes docs/figures from study/results and from what the program says of mixers.   usage: node figures.mjs [--check]
import { build } from "esbuild";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url)), root = join(here, "..");

/** The claims whose figures README and docs show. */
const SHOWN = ["large-prompt.slope", "softmax-rnn.truncation", "inline.collapse-collinear"];

const MAPS = ["softmax", "linear-elu", "retnet", "gla", "deltanet", "gated-deltanet", "mlstm", "rwkv7"];

const scratch = mkdtempSync(join(tmpdir(), "isomer-figures-"));
process.on("exit", () => rmSync(scratch, { recursive: true }));
const module = join(scratch, "static.mjs");
await build({ entryPoints: [join(here, "src/static.tsx")], bundle: true, outfile: module, format: "esm", platform: "node", jsx: "automatic", jsxImportSource: "preact" });
const { mapsPicture, pictureOf } = await import(pathToFileURL(module).href);

const folder = join(root, "docs/figures"), check = process.argv.includes("--check");
mkdirSync(folder, { recursive: true });
const stale = [];
function put(name, picture) {
  const path = join(folder, name);
  if (!existsSync(path) || readFileSync(path, "utf8") !== picture) stale.push(path);
  if (!check) writeFileSync(path, picture);
}

/** What a page of the program holds. */
function pageData() {
  const page = join(scratch, "page.html");
  execFileSync(process.env.ISOMER ?? join(root, "build/isomer"), ["report", join(root, "study/results"), "--output", page]);
  return JSON.parse(/id="data">(.*?)<\/script>/s.exec(readFileSync(page, "utf8"))[1]);
}

const data = pageData();
for (const id of SHOWN) put(`${id}.svg`, pictureOf(data.results.find((result) => result.id === id), 680));
// Its last digits are the machine's: it is written, not compared.
if (!check) put("mixers.svg", mapsPicture(MAPS.map((name) => data.mixers.find((mixer) => mixer.preset === name)), 4));
if (check && stale.length > 0) {
  console.error(`${stale.join(", ")}: not what study/results gives; run make figures`);
  process.exit(1);
}
