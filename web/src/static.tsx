// Figures without a browser, for README and docs: they follow the reader's light or dark.
import { renderToStaticMarkup } from "preact-render-to-string";
import type { Result } from "./data.ts";
import { Plot } from "./figure/plot.tsx";
import { specOf } from "./figure/spec.ts";
import { DARK, LIGHT, variables } from "./figure/theme.ts";

/** Of a picture that has variables for its colours, one that knows them. */
export function themed(svg: string): string {
  const style = `<style>svg { ${variables(LIGHT)} } @media (prefers-color-scheme: dark) { svg { ${variables(DARK)} } }</style>`;
  return svg.replace(/(<svg[^>]*>)/, `$1${style}<rect width="100%" height="100%" rx="6" fill="var(--surface)"/>`) + "\n";
}

export function pictureOf(result: Result, width: number): string {
  const spec = specOf(result);
  if (!spec) throw new Error(`${result.id}: expected a result with a figure`);
  return themed(renderToStaticMarkup(<Plot spec={spec} width={width} />));
}
