// An attention map: a row for each output, a column for each input, nothing above the diagonal.
import { render } from "preact";
import { num } from "../format.ts";
import { Svg } from "./frame.tsx";
import { csvCell, SaveButtons } from "./saving.tsx";
import { textWidth } from "./scales.ts";
import { diverging } from "./theme.ts";

/** The colour of a weight beside the largest of its row: weights shrink as there are more of them. The same for all maps, about zero. */
export function shade(rows: number[][]): (t: number, value: number) => string {
  const most = rows.map((row) => Math.max(...row.map(Math.abs), 1e-300));
  return (t, v) => diverging(0.5 + v / most[t]! / 2);
}

/** Rows without what a token is to itself, beside which the others may be too small to be seen. */
export const withoutOwn = (rows: number[][]): number[][] => rows.map((row, t) => row.map((v, s) => (s === t ? 0 : v)));

/** What maps and their colours mean, and whether they have a token's weight for itself. */
export function MapKey({ own, setOwn }: { own: boolean; setOwn: (own: boolean) => void }) {
  return (
    <div class="map-key">
      <ShadeLegend />
      <span class="quiet">A row for each output, a column for each token that it reads.</span>
      <label><input type="checkbox" checked={!own} onChange={(e) => setOwn(!e.currentTarget.checked)} /> without a token's weight for itself</label>
    </div>
  );
}

function ShadeLegend() {
  const width = 140, steps = 30;
  return (
    <Svg width={width + 190} height={36} label="Colours of the maps: weights over the largest of their row, from −1 over 0 to 1.">
      {Array.from({ length: steps }, (_, i) => <rect key={i} x={12 + (width * i) / steps} y={5} width={width / steps + 0.5} height={12} fill={diverging((i + 0.5) / steps)} />)}
      {["−1", "0", "1"].map((text, i) => <text key={text} x={12 + (width * i) / 2} y={31} font-size="11" text-anchor="middle" fill="var(--muted)">{text}</text>)}
      <text x={width + 24} y={16} font-size="12" fill="var(--ink)">over the largest of its row</text>
    </Svg>
  );
}

/** The cells alone, for many maps in one picture. */
export function Cells({ rows, cell }: { rows: number[][]; cell: number }) {
  const fill = shade(rows);
  return <g>{rows.flatMap((row, t) => row.map((v, s) => <rect key={`${t},${s}`} x={cell * s} y={cell * t} width={cell - 1} height={cell - 1} fill={fill(t, v)} />))}</g>;
}

/** The files of a map: as it is drawn, and a line for each weight. */
export function MapTools({ words, rows, label, name }: { words: string[]; rows: number[][]; label: string; name: string }) {
  const picture = (): SVGElement => {
    const host = document.createElement("div");
    render(<AttentionMap words={words} rows={rows} label={label} />, host);
    return host.querySelector("svg")!;
  };
  const table = () => ["output,input,output word,input word,weight", ...rows.flatMap((row, t) => row.map((v, s) => [t + 1, s + 1, csvCell(words[t]!), csvCell(words[s]!), v].join(",")))].join("\n") + "\n";
  return <p class="tools"><SaveButtons name={name} svg={picture} csv={table} /></p>;
}

interface MapOptions { words: string[]; rows: number[][]; label: string; token?: number; choose?: (t: number) => void; cell?: number }

export function AttentionMap({ words, rows, label, token, choose, cell = 22 }: MapOptions) {
  const left = 1.1 * Math.max(...words.map((w) => textWidth(w, 11))) + 13, T = rows.length;
  const fill = shade(rows), width = left + cell * T + 6, height = cell * T + left;
  return (
    <Svg width={width} height={height} label={label}>
      {rows.map((row, t) => (
        <g key={t} onClick={choose && (() => choose(t))} style={choose && { cursor: "pointer" }}>
          <text x={left - 6} y={cell * (t + 0.5)} dy="0.33em" font-size="11" text-anchor="end" fill={t === token ? "var(--ink)" : "var(--muted)"} font-weight={t === token ? 700 : 400}>{words[t]}</text>
          {row.map((v, s) => <rect key={s} x={left + cell * s} y={cell * t} width={cell - 1} height={cell - 1} fill={fill(t, v)}><title>{`${words[t]} ← ${words[s]}: ${num(v, 3)}`}</title></rect>)}
        </g>
      ))}
      {token !== undefined && rows[token] && ["#ffffff", "#111111"].map((stroke, i) => (
        <rect key={stroke} x={left - 1} y={cell * token - 1} width={cell * rows[token]!.length + 1} height={cell + 1} fill="none" stroke={stroke} stroke-width={i === 0 ? 4 : 1.8} pointer-events="none" />
      ))}
      {words.slice(0, T).map((word, s) => (
        <text key={s} transform={`translate(${left + cell * (s + 0.5)},${cell * T + 6}) rotate(-90)`} dy="0.33em" font-size="11" text-anchor="end" fill="var(--muted)">{word}</text>
      ))}
    </Svg>
  );
}
