// Builds the page that is compiled into the program: page.html, one file with everything in it.   usage: node build.mjs [OUTPUT]
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** What the page is made of. tests/page_test.py knows the same rule. */
function sources() {
  const inside = readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(here, join(entry.parentPath ?? entry.path, entry.name)));
  return ["build.mjs", "package.json", "package-lock.json", "tsconfig.json", ...inside].sort();
}

function sourceHash() {
  const hash = createHash("sha256");
  for (const name of sources()) hash.update(name + "\n").update(readFileSync(join(here, name))).update("\n");
  return hash.digest("hex");
}

async function minified(options) {
  const { outputFiles } = await build({ bundle: true, minify: true, write: false, charset: "utf8", legalComments: "none", ...options });
  return outputFiles[0].text.trim();
}

/** The colours stand in theme.ts; dark ones are needed twice, by the system's wish and by the reader's. */
async function styleSheet() {
  const module = await minified({ entryPoints: [join(here, "src/figure/theme.ts")], format: "esm" });
  const { LIGHT, DARK, variables } = await import("data:text/javascript," + encodeURIComponent(module));
  return readFileSync(join(here, "src/style.css"), "utf8").replaceAll("@light", variables(LIGHT)).replaceAll("@dark", variables(DARK));
}

const script = await minified({ entryPoints: [join(here, "src/main.tsx")], format: "iife", target: "es2022", jsx: "automatic", jsxImportSource: "preact" });
const style = await minified({ stdin: { contents: await styleSheet(), loader: "css" }, target: "es2022" });
const parts = { sources: sourceHash(), style, script };
const page = readFileSync(join(here, "src/page.html"), "utf8").replace(/@(sources|style|script)\b/g, (_, name) => parts[name]);
const output = process.argv[2] ?? join(here, "page.html");
mkdirSync(dirname(output), { recursive: true });
writeFileSync(output, page);
console.log(`${output}: ${Math.round(page.length / 1024)} KiB`);
