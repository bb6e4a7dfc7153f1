// Figures without a browser, for README and docs: they follow the reader's light or dark.
import { renderToStaticMarkup } from "preact-render-to-string";
import type { MixerView, Result } from "./data.ts";
import { rowsOf } from "./explore.tsx";
import { Svg } from "./figure/frame.tsx";
import { Cells } from "./figure/map.tsx";
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

/** Maps of some mixers beside each other: the first head of each, on the same words. */
export function mapsPicture(mixers: MixerView[], columns: number): string {
  const cell = 12, T = mixers[0]!.words.length, step = cell * T + 36, top = 34;
  const label = `Effective attention matrices of ${mixers.map((m) => m.preset).join(", ")} on the words: ${mixers[0]!.words.join(" ")}`;
  return themed(renderToStaticMarkup(
    <Svg width={columns * step + 4} height={Math.ceil(mixers.length / columns) * (step + 8) + 4} label={label}>
      {mixers.map((mixer, i) => (
        <g key={mixer.preset} transform={`translate(${20 + (i % columns) * step},${top + Math.floor(i / columns) * (step + 8)})`}>
          <text y={-10} font-size="13" font-weight="600" fill="var(--ink)">{mixer.preset}</text>
          <Cells rows={rowsOf(mixer, mixer.heads[0]!, "weights")} cell={cell} />
        </g>
      ))}
    </Svg>,
  ));
}
