// Bars, matrices, and quantities with their intervals.
import { scaleBand } from "d3-scale";
import { alike, digitsOf, num } from "../format.ts";
import { Axes, type Drawing, fitted, Legend, legendRows, Marker } from "./frame.tsx";
import { axisOf, textWidth } from "./scales.ts";
import { nameOf, type Point, type Spec } from "./spec.ts";
import { colour, diverging, sequential, textOn } from "./theme.ts";

/** Values beside their marks: of few those that differ shall look different. */
const labelsOf = (values: number[]): string[] => alike(values, values.length <= 12 ? digitsOf(values) : 3);
const widest = (labels: string[]): number => Math.max(...labels.map((label) => textWidth(label)));
const whisker = (p: Point): string => (p.high > p.low ? `  [${num(p.low, 3)}, ${num(p.high, 3)}]` : "");

/** One bar a series: names are read best along lines. */
function drawNamedBars(spec: Spec, width: number): Drawing {
  const row = 26, top = 8;
  const names = spec.series.map((s) => s.name);
  const left = Math.min(width * 0.4, Math.max(...names.map((n) => textWidth(n)))) + 14;
  const bottom = top + row * names.length + 4;
  const points = spec.series.map((s) => s.points[0]!), labels = labelsOf(points.map((p) => p.y)), right = width - 20 - widest(labels);
  const x = axisOf(points.flatMap((p) => [p.y, p.low, p.high]), { log: false, range: [left, right], room: 70, zero: true });
  const body = (
    <g>
      {x.ticks.map((t) => <line key={t.value} x1={x.at(t.value)} x2={x.at(t.value)} y1={top} y2={bottom} stroke="var(--line)" />)}
      {points.map((p, i) => {
        const y = top + row * i, [a, b] = [x.at(0), x.at(p.y)].sort((u, v) => u - v) as [number, number];
        return (
          <g key={names[i]}>
            <text x={left - 8} y={y + row / 2} dy="0.33em" text-anchor="end" fill="var(--ink)">{fitted(names[i]!, left - 10)}</text>
            <rect x={a} y={y + 5} width={Math.max(b - a, 1)} height={row - 10} rx={2} fill={colour(0)} />
            {p.high > p.low && <line x1={x.at(p.low)} x2={x.at(p.high)} y1={y + row / 2} y2={y + row / 2} stroke="var(--ink)" stroke-width={1.5} />}
            <text x={Math.max(b, x.at(p.high)) + 6} y={y + row / 2} dy="0.33em" fill="var(--muted)">{labels[i]}</text>
          </g>
        );
      })}
      <Axes area={{ left, right, top, bottom }} x={x} y={null} xLabel={spec.y} yLabel="" />
    </g>
  );
  const targets = points.map((p, i) => ({ x: x.at(p.y), y: top + row * (i + 0.5), head: names[i]!, rows: [{ name: spec.y || "value", text: num(p.y) + whisker(p), series: 0 }] }));
  return { height: bottom + 44, body, targets, pick: "nearest", area: { left, right, top, bottom } };
}

/** A name on two lines, if it has two words. */
function inTwo(name: string): string[] {
  const words = name.split(" "), first = Math.ceil(words.length / 2);
  return words.length > 1 ? [words.slice(0, first).join(" "), words.slice(first).join(" ")] : [name];
}

const FEW = 24; // bars whose zeros are written

export function drawBars(spec: Spec, width: number, wanted: number): Drawing {
  if (spec.series.length > 1 && spec.series.every((s) => s.points.length === 1)) return drawNamedBars(spec, width);
  const names = spec.series.map((s) => s.name), many = names.length > 1, items = names.map((name, i) => ({ name, i }));
  const legend = many ? legendRows(items, width - 8).height + 8 : 0;
  const top = 30 + legend, height = wanted + legend, bottom = height - 46, right = width - 12;
  const points = spec.series.flatMap((s) => s.points);
  const y = axisOf([...points.flatMap((p) => [p.y, p.low, p.high]), ...(spec.names ? [...(spec.published?.values() ?? [])] : [])], { log: false, range: [bottom, top], room: 34, zero: true });
  const left = 18 + Math.max(...y.ticks.map((t) => textWidth(t.label)));
  const xs = [...new Set(points.map((p) => p.x))].sort((a, b) => a - b);
  const outer = scaleBand<number>(xs, [left, right]).padding(0.25);
  const inner = scaleBand<number>(names.map((_, i) => i), [0, outer.bandwidth()]).padding(many ? 0.12 : 0);
  // Names that do not fit beside each other stand on two lines in turn; of many numbers some are enough.
  const every = spec.names ? 1 : Math.ceil(34 / outer.step());
  const crowded = spec.names !== undefined && Math.max(...xs.map((v) => textWidth(nameOf(spec, v)))) > outer.step() - 6;
  const labels = crowded ? [] : xs.filter((_, i) => i % every === 0).map((value) => ({ value, label: nameOf(spec, value) }));
  const x = { at: (v: number) => outer(v)! + outer.bandwidth() / 2, ticks: labels, log: false, domain: [0, 1] as [number, number] };
  const published = (name: string, p: Point) => (spec.names ? spec.published?.get(`${name}, ${nameOf(spec, p.x)}`) : undefined);
  const middle = (p: Point, i: number) => outer(p.x)! + inner(i)! + inner.bandwidth() / 2;
  const bars = spec.series.flatMap((s, i) => s.points.map((p) => ({ p, i, name: s.name, x: middle(p, i) })));
  const body = (
    <g>
      {many && <Legend items={items} width={width - 8} lines={false} />}
      <Axes area={{ left, right, top, bottom }} x={x} y={y} xLabel={spec.names ? "" : spec.x} yLabel={spec.y} />
      {bars.map(({ p, i, name, x: at }) => {
        const [a, b] = [y.at(0), y.at(p.y)].sort((u, v) => u - v) as [number, number];
        return (
          <g key={`${i},${p.x}`}>
            <rect x={at - inner.bandwidth() / 2} y={a} width={inner.bandwidth()} height={Math.max(b - a, p.y === 0 ? 0 : 1)} rx={2} fill={colour(i)} />
            {p.y === 0 && bars.length <= FEW && <text x={at} y={bottom - 5} text-anchor="middle" fill="var(--muted)">0</text>}
            {p.high > p.low && <line x1={at} x2={at} y1={y.at(p.low)} y2={y.at(p.high)} stroke="var(--ink)" stroke-width={1.5} />}
            {published(name, p) !== undefined && <path d={`M${at},${y.at(published(name, p)!) - 5}l5,5l-5,5l-5,-5z`} fill="var(--surface)" stroke="var(--ink)" stroke-width={1.3} />}
          </g>
        );
      })}
      {crowded && xs.map((v, i) => {
        const lines = inTwo(nameOf(spec, v)).map((part) => fitted(part, 2 * outer.step() - 8, 11)), half = Math.max(...lines.map((part) => textWidth(part, 11))) / 2 + 4;
        const at = Math.min(width - half, Math.max(half, x.at(v))), first = bottom + (i % 2 === 0 ? 16 : 42);
        return <text key={v} text-anchor="middle" fill="var(--muted)" font-size="11">{lines.map((part, n) => <tspan key={n} x={at} y={first + 12 * n}>{part}</tspan>)}</text>;
      })}
    </g>
  );
  const targets = bars.map(({ p, i, name, x: at }) => ({
    x: at, y: y.at(p.y), head: spec.names ? nameOf(spec, p.x) : `${spec.x || "x"} = ${num(p.x)}`,
    rows: [{ name, text: num(p.y) + whisker(p), series: i }, ...(published(name, p) === undefined ? [] : [{ name: "published", text: num(published(name, p)), series: -1 }])],
  }));
  return { height: crowded ? height + 14 : height, body, targets, pick: "nearest", area: { left, right, top, bottom } };
}

/** A row for each series, a column for each x. */
export function drawMatrix(spec: Spec, width: number): Drawing {
  const rows = spec.series, xs = [...new Set(rows.flatMap((s) => s.points.map((p) => p.x)))].sort((a, b) => a - b);
  const values = rows.flatMap((s) => s.points.map((p) => p.y));
  const low = Math.min(...values), high = Math.max(...values), signed = low < 0;
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const fill = (v: number) => (signed ? diverging(0.5 + v / most / 2) : sequential(high > low ? (v - Math.min(low, 0)) / (high - Math.min(low, 0) || 1) : 0.5));
  const named = rows.length <= 32;
  const left = named ? Math.min(width * 0.3, Math.max(...rows.map((s) => textWidth(s.name)))) + 14 : 30;
  const top = 52, room = width - 8 - left, square = rows.length >= 12 && xs.length >= 12;
  const w = square ? Math.min(room / xs.length, 480 / rows.length) : room / xs.length;
  const h = square ? w : Math.min(34, Math.max(16, w));
  const right = left + w * xs.length, bottom = top + h * rows.length;
  const column = (x: number) => left + w * xs.indexOf(x);
  const every = Math.ceil(44 / w);
  const axis = { at: (v: number) => column(v) + w / 2, ticks: xs.filter((_, i) => i % every === 0).map((value) => ({ value, label: num(value) })), log: false, domain: [0, 1] as [number, number] };
  const written = w >= 40 && h >= 16 && values.length <= 120;
  const bar = Math.min(180, width * 0.4), steps = 24;
  const [from, to] = signed ? [-most, most] : [Math.min(low, 0), high];
  const body = (
    <g>
      <g transform="translate(4,4)">
        {Array.from({ length: steps }, (_, i) => <rect key={i} x={(bar * i) / steps} width={bar / steps + 0.5} height={10} fill={fill(from + ((to - from) * (i + 0.5)) / steps)} />)}
        <text y={24} fill="var(--muted)">{num(from, 2)}</text>
        <text x={bar} y={24} text-anchor="end" fill="var(--muted)">{num(to, 2)}</text>
        <text x={bar + 10} y={9} fill="var(--ink)">{spec.y}</text>
      </g>
      {rows.map((s, r) => (
        <g key={s.name}>
          {named && <text x={left - 8} y={top + h * (r + 0.5)} dy="0.33em" text-anchor="end" fill="var(--ink)">{fitted(s.name, left - 10)}</text>}
          {s.points.map((p) => (
            <g key={p.x}>
              <rect x={column(p.x)} y={top + h * r} width={Math.max(w - (w > 8 ? 1 : 0), 0.5)} height={Math.max(h - (h > 8 ? 1 : 0), 0.5)} fill={fill(p.y)} />
              {written && <text x={column(p.x) + w / 2} y={top + h * (r + 0.5)} dy="0.33em" text-anchor="middle" font-size="11" fill={textOn(fill(p.y))}>{num(p.y, 2)}</text>}
            </g>
          ))}
        </g>
      ))}
      <Axes area={{ left, right, top, bottom }} x={axis} y={null} xLabel={spec.x} yLabel="" />
    </g>
  );
  const targets = rows.flatMap((s, r) => s.points.map((p) => ({ x: column(p.x) + w / 2, y: top + h * (r + 0.5), head: s.name, rows: [{ name: `${spec.x || "column"} ${num(p.x)}`, text: num(p.y) + whisker(p), series: -1 }] })));
  return { height: bottom + 44, body, targets, pick: "nearest", area: { left, right, top, bottom } };
}

const FAR = 20; // rows

/** Each quantity on a line of its own, with what was published beside it. */
export function drawIntervals(spec: Spec, width: number): Drawing {
  const names = spec.series.map((s) => s.name), points = spec.series.map((s) => s.points[0]!);
  const longest = widest(names);
  const beside = longest < width * (width >= 460 ? 0.45 : 0.36);
  // Of many rows the axis is out of sight at one end.
  const far = names.length > FAR, row = beside ? 28 : 40, top = far ? 28 : 10, left = beside ? longest + 22 : 34;
  const labels = labelsOf(points.map((p) => p.x));
  const right = width - 24 - widest(labels);
  const bottom = top + row * names.length;
  const published = names.map((n) => spec.published?.get(n));
  const all = [...points.flatMap((p) => [p.x, p.low, p.high]), ...published.flatMap((v) => (v === undefined ? [] : [v]))];
  const log = all.every((v) => v > 0) && Math.max(...all) / Math.min(...all) > 50;
  const x = axisOf(all, { log, range: [left, right], room: 64 });
  const body = (
    <g>
      {x.ticks.map((t) => <line key={t.value} x1={x.at(t.value)} x2={x.at(t.value)} y1={top} y2={bottom} stroke="var(--line)" />)}
      {far && x.ticks.map((t) => <text key={t.value} x={x.at(t.value)} y={top - 8} text-anchor="middle" fill="var(--muted)">{t.label}</text>)}
      {points.map((p, i) => {
        const y = top + row * (i + (beside ? 0.5 : 0.72));
        return (
          <g key={names[i]}>
            <text x={beside ? left - 14 : 8} y={beside ? y : y - 15} dy="0.33em" text-anchor={beside ? "end" : "start"} fill="var(--ink)" stroke="var(--surface)" stroke-width={4} paint-order="stroke">{names[i]}</text>
            {p.high > p.low && <line x1={x.at(p.low)} x2={x.at(p.high)} y1={y} y2={y} stroke={colour(0)} stroke-width={5} stroke-opacity={0.35} stroke-linecap="round" />}
            {published[i] !== undefined && <path d={`M${x.at(published[i]!)},${y - 7}l7,7l-7,7l-7,-7z`} fill="var(--surface)" stroke={colour(1)} stroke-width={1.8} />}
            <Marker i={0} x={x.at(p.x)} y={y} />
            <text x={right + 14} y={y} dy="0.33em" fill="var(--muted)">{labels[i]}</text>
          </g>
        );
      })}
      <Axes area={{ left, right, top, bottom }} x={x} y={null} xLabel={spec.x} yLabel="" />
    </g>
  );
  const targets = points.map((p, i) => ({
    x: x.at(p.x), y: top + row * (i + (beside ? 0.5 : 0.72)), head: names[i]!,
    rows: [
      { name: "measured", text: num(p.x) + whisker(p), series: 0 },
      ...(published[i] === undefined ? [] : [{ name: "published", text: num(published[i]), series: 1 }]),
    ],
  }));
  return { height: bottom + (spec.x ? 44 : 26), body, targets, pick: "nearest", area: { left, right, top, bottom } };
}
