// What all figures have: a drawing area with axes, a legend, and places that a pointer finds.
import type { ComponentChildren, JSX } from "preact";
import { typeset } from "../format.ts";
import { symbol, symbolCircle, symbolCross, symbolDiamond, symbolSquare, symbolTriangle, symbolWye } from "d3-shape";
import { colour, dash } from "./theme.ts";
import { type Axis, textWidth } from "./scales.ts";

/** What a pointer finds near a place: a heading and a value for each series. */
export interface Target { x: number; y: number; head: string; rows: { name: string; text: string; series: number }[] }
export interface Drawing { height: number; body: JSX.Element; targets: Target[]; pick: "x" | "nearest"; area: Area }
export interface Area { left: number; right: number; top: number; bottom: number }

const SHAPES = [symbolCircle, symbolSquare, symbolTriangle, symbolDiamond, symbolCross, symbolWye];
export const shape = (i: number, size = 44): string => symbol(SHAPES[i % SHAPES.length]!, size)() ?? "";

export function Marker({ i, x, y, hollow = false }: { i: number; x: number; y: number; hollow?: boolean }) {
  const c = colour(i);
  return <path d={shape(i)} transform={`translate(${x.toFixed(1)},${y.toFixed(1)})`} fill={hollow ? "var(--surface)" : c} stroke={c} stroke-width={hollow ? 1.5 : 0} />;
}

/** A text as far as there is room. */
export function fitted(text: string, most: number, size = 12): string {
  if (textWidth(text, size) <= most) return text;
  let end = text.length - 1;
  while (end > 3 && textWidth(text.slice(0, end) + "…", size) > most) --end;
  return text.slice(0, end).trimEnd() + "…";
}

export function Axes({ area, x, y, xLabel, yLabel }: { area: Area; x: Axis; y: Axis | null; xLabel: string; yLabel: string }) {
  return (
    <g>
      {y?.ticks.map(({ value, label }) => (
        <g key={value} transform={`translate(0,${y.at(value).toFixed(1)})`}>
          <line x1={area.left} x2={area.right} stroke="var(--line)" />
          <text x={area.left - 8} dy="0.32em" text-anchor="end" fill="var(--muted)">{label}</text>
        </g>
      ))}
      <line x1={area.left} x2={area.right} y1={area.bottom} y2={area.bottom} stroke="var(--muted)" />
      {x.ticks.map(({ value, label }) => (
        <g key={value} transform={`translate(${x.at(value).toFixed(1)},${area.bottom})`}>
          <line y2={5} stroke="var(--muted)" />
          <text y={18} text-anchor="middle" fill="var(--muted)">{label}</text>
        </g>
      ))}
      {xLabel && <text x={area.right} y={area.bottom + 36} text-anchor="end" fill="var(--ink)">{fitted(typeset(xLabel), area.right - 18)} →</text>}
      {yLabel && <text x={4} y={area.top - 13} fill="var(--ink)">↑ {typeset(yLabel)}</text>}
    </g>
  );
}

/** A name and the number of its series, which decides how it looks. */
export interface Item { name: string; i: number }

/** Names in rows: as many in one as fit, or one in each where most need a row of their own. */
export function legendRows(items: Item[], width: number): { rows: (Item & { x: number })[][]; height: number } {
  const rows: (Item & { x: number })[][] = [[]];
  let x = 0;
  items.forEach(({ name, i }) => {
    const needed = textWidth(name) + 40;
    if (x > 0 && x + needed > width) {
      rows.push([]);
      x = 0;
    }
    rows.at(-1)!.push({ name, i, x });
    x += needed;
  });
  if (rows.length > 2 && rows.slice(0, -1).some((row) => row.length === 1)) return { rows: items.map((item) => [{ ...item, x: 0 }]), height: items.length * 20 };
  return { rows, height: rows.length * 20 };
}

export function Legend({ items, width, lines }: { items: Item[]; width: number; lines: boolean }) {
  return (
    <g transform="translate(4,0)">
      {legendRows(items, width).rows.flatMap((row, r) =>
        row.map(({ name, i, x }) => (
          <g key={i} transform={`translate(${x.toFixed(1)},${r * 20 + 10})`}>
            {lines && <line x1={0} x2={18} stroke={colour(i)} stroke-width={2} stroke-dasharray={dash(i)} />}
            <Marker i={i} x={9} y={0} />
            <text x={24} dy="0.33em" fill="var(--ink)">{name}</text>
          </g>
        )),
      )}
    </g>
  );
}

export function Svg({ width, height, label, children }: { width: number; height: number; label: string; children: ComponentChildren }) {
  return (
    <svg
      class="plot"
      xmlns="http://www.w3.org/2000/svg"
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      role="img"
      aria-label={label}
      font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
      font-size="12"
    >
      {children}
    </svg>
  );
}
