// The page in the repository is what its sources give.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { folder, web } from "./pages.mjs";

test("the kept page is built from web/src, byte for byte", () => {
  const output = join(folder, "built.html");
  execFileSync(process.execPath, [join(web, "build.mjs"), output]);
  assert.ok(readFileSync(output).equals(readFileSync(join(web, "page.html"))), "run `make web` and keep web/page.html");
  assert.ok(statSync(output).size < 600 * 1024);
});

test("figures of the docs are those of the kept results", () => {
  execFileSync(process.execPath, [join(web, "figures.mjs"), "--check"]);
});
