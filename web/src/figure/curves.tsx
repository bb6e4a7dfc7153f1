// Lines with bands, and scattered dots.
import { area as areaShape, line as lineShape } from "d3-shape";
import { num } from "../format.ts";
import { Axes, type Area, type Drawing, type Item, Legend, legendRows, Marker, type Target } from "./frame.tsx";
import { blocksOf, Lines, Names, numbered } from "./names.tsx";
import { axisOf, type Axis, geometric, spread, textWidth } from "./scales.ts";
import { type Point, type Series, slopeOf, type Spec } from "./spec.ts";
import { COLOURS, colour, dash } from "./theme.ts";

const WIDE = 520;
const CROWD = 24; // scattered dots that ask for more room
const MANY = 24; // points of a curve that is drawn without markers

const pointsOf = (spec: Spec): Point[] => spec.series.flatMap((s) => s.points);

/** Which axes are logarithmic. */
function logAxes(spec: Spec): { x: boolean; y: boolean } {
  const points = pointsOf(spec);
  const xs = points.map((p) => p.x), ys = points.map((p) => p.y);
  const positive = xs.every((x) => x > 0);
  const wide = (values: number[], ratio: number) => values.every((v) => v > 0) && Math.max(...values) / Math.min(...values) > ratio;
  if (spec.kind === "loglog") return { x: positive, y: ys.some((y) => y > 0) };
  if (spec.kind === "scatter") return { x: wide(xs, 10), y: wide(ys, 1000) };
  return { x: geometric(xs), y: spec.logY === true && ys.some((y) => y > 0) };
}

/** The names of series that have points; a series without keeps its place among the colours. */
function itemsOf(spec: Spec): Item[] {
  return spec.series.flatMap((s, i) => {
    const fit = spec.fits ? slopeOf(s.points) : null;
    return s.points.length > 0 ? [{ name: fit ? `${s.name}, slope ${num(fit.slope, 2)}` : s.name, i }] : [];
  });
}

/** Groups of a scatter, which tell its dots apart where there are some. */
function scatterGroups(spec: Spec): Item[] | null {
  if (spec.kind !== "scatter" || !spec.series.some((s) => s.group)) return null;
  return [...new Set(spec.series.map((s) => s.group ?? ""))].map((name, i) => ({ name, i }));
}

/** The values that are drawn across the figure. */
function Levels({ spec, layout }: { spec: Spec; layout: Layout }) {
  const { area, y } = layout;
  return (
    <g>
      {(spec.levels ?? []).map(({ name, point }) => (
        <g key={name}>
          {point.high > point.low && <rect x={area.left} width={area.right - area.left} y={y.at(point.high)} height={Math.max(1, y.at(point.low) - y.at(point.high))} fill="var(--ink)" fill-opacity={0.1} />}
          <line x1={area.left} x2={area.right} y1={y.at(point.y)} y2={y.at(point.y)} stroke="var(--ink)" stroke-width={1.3} stroke-dasharray="5 4" />
          <text x={area.left + 6} y={y.at(Math.max(point.y, point.high)) - 5} fill="var(--ink)">{`${name} ${num(point.y, 3)}`}</text>
        </g>
      ))}
    </g>
  );
}

/** `above`: free room between the label of the axis and the area, for names of dots that lie at its upper edge. */
interface Layout { area: Area; above: number; x: Axis; y: Axis; items: Item[]; direct: boolean; legend: boolean; height: number }

function layoutOf(spec: Spec, width: number, wanted: number): Layout {
  const items = scatterGroups(spec) ?? itemsOf(spec), points = pointsOf(spec), log = logAxes(spec);
  const scattered = spec.kind === "scatter";
  const alone = scattered && spec.series.every((s) => s.points.length === 1);
  const longest = Math.max(...items.map(({ name }) => textWidth(name)));
  const grouped = scatterGroups(spec) !== null;
  const direct = !scattered && items.length > 1 && items.length <= 10 && width >= WIDE && longest < width * 0.4;
  const legend = !direct && (grouped || (!alone && (items.length > 1 || (spec.fits ?? false))));
  const above = alone && spec.series.length > CROWD ? (width < WIDE ? 16 : 44) : 0;
  const top = 30 + above + (legend ? legendRows(items, width - 8).height + 8 : 0);
  const height = wanted + top - 30;
  const values = [...points, ...(spec.levels ?? []).map((l) => l.point)].flatMap((p) => [p.y, p.low, p.high]);
  const bottom = height - 46;
  const y = axisOf(values, { log: log.y, range: [bottom, top], room: 34 });
  const left = 18 + Math.max(...y.ticks.map((t) => textWidth(t.label)), 12);
  const right = width - (direct ? longest + 22 : 16);
  const xs = points.map((p) => p.x);
  const x = axisOf(xs, { log: log.x, range: [left + 8, right - 8], room: 44, prefer: scattered ? undefined : xs, exact: !scattered });
  return { area: { left, right, top, bottom }, above, x, y, items, direct, legend, height };
}

/** A line that lies on an earlier one is dashed, so that both are seen. */
function liesOnAnother(all: Series[], i: number, { y }: Layout): boolean {
  const here = all[i]!.points;
  const alike = (other: Point[]) => here.length > 1 && other.length === here.length && here.every((p, n) => other[n]!.x === p.x && Math.abs(y.at(other[n]!.y) - y.at(p.y)) < 1);
  return all.slice(0, i).some((other) => alike(other.points));
}

function Curve({ all, i, layout, fit }: { all: Series[]; i: number; layout: Layout; fit: boolean }) {
  const { x, y } = layout, series = all[i]!, dashes = liesOnAnother(all, i, layout) ? "7 7" : dash(i);
  const shown = y.log ? series.points.filter((p) => p.y > 0) : series.points;
  const line = lineShape<Point>((p) => x.at(p.x), (p) => y.at(p.y))(shown) ?? "";
  const banded = shown.some((p) => p.high > p.low);
  const band = areaShape<Point>((p) => x.at(p.x), (p) => y.at(p.low), (p) => y.at(p.high))(shown) ?? "";
  // Edges tell bands apart that lie on each other.
  const edges = [(p: Point) => y.at(p.low), (p: Point) => y.at(p.high)].map((of) => lineShape<Point>((p) => x.at(p.x), of)(shown) ?? "");
  const slope = fit ? slopeOf(shown) : null;
  const few = series.points.length <= MANY;
  return (
    <g>
      {banded && <path d={band} fill={colour(i)} fill-opacity={0.14} />}
      {banded && edges.map((d, side) => <path key={side} d={d} fill="none" stroke={colour(i)} stroke-width={1} stroke-opacity={0.4} />)}
      {slope && shown.length > 1 && (
        <line
          x1={x.at(shown[0]!.x)} y1={y.at(slope.at(shown[0]!.x))} x2={x.at(shown.at(-1)!.x)} y2={y.at(slope.at(shown.at(-1)!.x))}
          stroke={colour(i)} stroke-width={1} stroke-dasharray="2 4" opacity={0.8}
        />
      )}
      <path d={line} fill="none" stroke={colour(i)} stroke-width={few ? 2 : 1.5} stroke-dasharray={dashes} stroke-linejoin="round" />
      {few && shown.map((p) => <Marker key={p.x} i={i} x={x.at(p.x)} y={y.at(p.y)} />)}
      {y.log && series.points.filter((p) => p.y <= 0).map((p) => (
        <g key={p.x}>
          <Marker i={i} x={x.at(p.x)} y={layout.area.bottom} hollow />
          <text x={x.at(p.x) + 8} y={layout.area.bottom - 6} fill="var(--muted)">{num(p.y, 2)}</text>
        </g>
      ))}
    </g>
  );
}

function EndLabels({ spec, layout }: { spec: Spec; layout: Layout }) {
  const { area, x, y, items } = layout;
  const last = items.map(({ i }) => spec.series[i]!.points.at(-1)!);
  const places = spread(last.map((p) => y.at(p.y)), 15, [area.top + 4, area.bottom - 4]);
  return (
    <g>
      {items.map(({ name, i }, n) => (
        <g key={name}>
          <path d={`M${x.at(last[n]!.x) + 6},${y.at(last[n]!.y)}L${area.right + 4},${places[n]}`} stroke={colour(i)} stroke-opacity={0.5} fill="none" />
          <text x={area.right + 8} y={places[n]} dy="0.33em" fill={colour(i)} font-weight="500">{name}</text>
        </g>
      ))}
    </g>
  );
}

const valueText = (p: Point): string => num(p.y) + (p.high > p.low ? `  [${num(p.low, 3)}, ${num(p.high, 3)}]` : "");

function targetsByX(spec: Spec, layout: Layout): Target[] {
  const places = new Map<number, Target>();
  spec.series.forEach((s, i) => s.points.forEach((p) => {
    const at = places.get(p.x) ?? { x: layout.x.at(p.x), y: layout.area.top, head: `${spec.x || "x"} = ${num(p.x)}`, rows: [] };
    at.rows.push({ name: s.name, text: valueText(p), series: i });
    places.set(p.x, at);
  }));
  return [...places.values()].sort((a, b) => a.x - b.x);
}

export function drawCurves(spec: Spec, width: number, wanted: number): Drawing {
  const layout = layoutOf(spec, width, wanted);
  const { area, x, y } = layout;
  const body = (
    <g>
      {layout.legend && <Legend items={layout.items} width={width - 8} lines />}
      <Axes area={area} x={x} y={y} xLabel={spec.x} yLabel={spec.y} />
      <Levels spec={spec} layout={layout} />
      {spec.series.map((s, i) => <Curve key={s.name} all={spec.series} i={i} layout={layout} fit={spec.fits ?? false} />)}
      {layout.direct && <EndLabels spec={spec} layout={layout} />}
    </g>
  );
  return { height: layout.height, body, targets: targetsByX(spec, layout), pick: "x", area };
}

type Place = { x: number; y: number };

/** The dots that no other one beats: further left and higher. */
function frontOf(dots: Place[]): Place[] {
  let height = Infinity;
  return [...dots].sort((a, b) => a.x - b.x || a.y - b.y).filter((d) => d.y < height && ((height = d.y), true));
}
const steps = (front: Place[]): string => front.map(({ x, y }, i) => (i === 0 ? `M${x},${y}` : `H${x}V${y}`)).join("");
const treads = (front: Place[]) => front.slice(1).map(({ x }, i) => ({ x: front[i]!.x, y: front[i]!.y - 1, w: x - front[i]!.x, h: 2 }));

export function drawScatter(spec: Spec, width: number, wanted: number): Drawing {
  const layout = layoutOf(spec, width, wanted + (spec.series.length > CROWD ? 160 : 60));
  const { area, x, y } = layout, room = { ...area, top: area.top - layout.above };
  const alone = spec.series.every((s) => s.points.length === 1), groups = scatterGroups(spec);
  // With many series colours tell nothing apart; groups do, and names.
  const look = (i: number) => (groups ? groups.findIndex((g) => g.name === (spec.series[i]!.group ?? "")) : spec.series.length > COLOURS ? 0 : i);
  const dots = spec.series.flatMap((s, i) => s.points.map((p) => ({ x: x.at(p.x), y: y.at(p.y), name: s.name, p, i })));
  const whiskers = dots.filter((d) => d.p.high > d.p.low).map((d) => ({ x: d.x - 1, y: y.at(d.p.high), w: 2, h: y.at(d.p.low) - y.at(d.p.high) }));
  const front = spec.front ? frontOf(dots) : [];
  const { numbers: shown, lines } = alone && dots.length > CROWD && width < WIDE ? numbered(dots, width - 16) : { numbers: dots, lines: [] };
  const body = (
    <g>
      {layout.legend && <Legend items={layout.items} width={width - 8} lines={false} />}
      <Axes area={room} x={x} y={y} xLabel={spec.x} yLabel={spec.y} />
      {spec.front && <path d={steps(front)} fill="none" stroke="var(--muted)" stroke-width={1.4} stroke-dasharray="5 4" />}
      {dots.map((d) => d.p.high > d.p.low && <line key={`w${d.i},${d.x}`} x1={d.x} x2={d.x} y1={y.at(d.p.low)} y2={y.at(d.p.high)} stroke={colour(look(d.i))} stroke-opacity={0.45} stroke-width={1.5} />)}
      {dots.map((d) => <Marker key={`${d.i},${d.x},${d.y}`} i={look(d.i)} x={d.x} y={d.y} />)}
      {alone && blocksOf(shown, [...whiskers, ...treads(front)], room).map((block) => <Names key={block.dots[0]!.name} block={block} look={(d) => look(d.i)} />)}
      <Lines lines={lines} x={8} y={layout.height} />
    </g>
  );
  const targets = dots.map((d) => ({
    x: d.x, y: d.y, head: d.name,
    rows: [{ name: spec.x || "x", text: num(d.p.x), series: look(d.i) }, { name: spec.y || "y", text: valueText(d.p), series: look(d.i) }],
  }));
  return { height: layout.height + (lines.length > 0 ? 15 * lines.length + 12 : 0), body, targets, pick: "nearest", area };
}
