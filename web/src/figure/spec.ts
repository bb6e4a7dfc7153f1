// A figure as data: what it shows, apart from how it is drawn.
import type { FigureData, Num, Result } from "../data.ts";
import { num } from "../format.ts";

export interface Point { x: number; y: number; low: number; high: number }
export interface Series { name: string; points: Point[] }
export type Kind = "lines" | "loglog" | "bars" | "matrix" | "scatter" | "intervals";

export interface Spec {
  kind: Kind;
  x: string;
  y: string;
  series: Series[];
  caption: string;
  /** Straight lines through a loglog figure, with their slopes. */
  fits?: boolean;
  /** Published values, by the name of a series of `intervals`. */
  published?: Map<string, number>;
  /** Asked for by a control of the page. */
  logY?: boolean;
}

const KINDS: Kind[] = ["lines", "loglog", "bars", "matrix", "scatter"];

const point = ([x, y, low, high]: [Num, Num, Num, Num]): Point[] =>
  x === null || y === null ? [] : [{ x, y, low: low ?? y, high: high ?? y }];

function seriesOf(figure: FigureData): Series[] {
  return figure.series.map((series) => ({ name: series.name, points: series.points.flatMap(point) })).filter((series) => series.points.length > 0);
}

/** Quantities on one axis say something only if they are of one kind. */
function comparable(result: Result): boolean {
  const { measured } = result;
  if (measured.length < 2 || new Set(measured.map((m) => m.unit)).size > 1) return false;
  const sizes = measured.map((m) => Math.abs(m.value ?? 0)).filter((v) => v > 0);
  return sizes.length > 0 && (Math.max(...sizes) / Math.min(...sizes) < 1e6 || sizes.length < measured.length);
}

/** What to see first: the largest and the smallest. */
function extremes(all: { name: string; value: number }[]): string {
  const sorted = [...all].sort((a, b) => b.value - a.value), most = sorted[0]!, least = sorted.at(-1)!;
  const told = (one: { name: string; value: number }) => `“${one.name}” (${num(one.value, 3)})`;
  return most.value === least.value ? `All are ${num(most.value, 3)}` : `${told(most)} is the largest and ${told(least)} the smallest`;
}

function intervalsOf(result: Result): Spec {
  const published = new Map<string, number>();
  for (const p of result.published) if (p.value !== null) published.set(p.name, p.value);
  const series = result.measured
    .filter((m) => m.value !== null)
    .map((m) => ({ name: m.name, points: [{ x: m.value!, y: 0, low: m.low ?? m.value!, high: m.high ?? m.value! }] }));
  const seeds = result.measured.some((m) => m.n > 1) ? ", with their 95 % intervals" : "";
  const known = [...published.keys()].some((name) => series.some((s) => s.name === name)) ? "; diamonds are published" : "";
  const caption = result.figure.caption || `${extremes(series.map((s) => ({ name: s.name, value: s.points[0]!.x })))}${seeds}${known}.`;
  return { kind: "intervals", x: result.measured[0]?.unit ?? "", y: "", series, caption, published };
}

/** The figure of a result; of one without series, its quantities; nothing where a number says it all. */
export function specOf(result: Result): Spec | null {
  const { figure } = result;
  const series = seriesOf(figure);
  if (series.length === 0) return comparable(result) ? intervalsOf(result) : null;
  const kind = KINDS.find((k) => k === figure.kind) ?? "lines";
  const ends = series.map((s) => ({ name: s.name, value: s.points.at(-1)!.y }));
  const caption = figure.caption || `${extremes(ends)}${series.some((s) => s.points.length > 1) ? " at the end" : ""}.`;
  return { kind, x: figure.x, y: figure.y, series, caption, fits: kind === "loglog" && /\bslope/.test(result.rule) };
}

/** What a picture says in words, for those who do not see it. */
export function describe(spec: Spec): string {
  const names = spec.series.map((s) => s.name);
  const shown = names.length > 8 ? `${names.slice(0, 8).join(", ")} and ${names.length - 8} more` : names.join(", ");
  const axes = spec.kind === "intervals" ? "measured values" : `${spec.y || "value"} against ${spec.x || "setting"}`;
  return `${spec.caption} ${axes}: ${shown}. The numbers are in the data table below.`;
}

const cell = (text: string): string => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

export function csvOf(spec: Spec): string {
  const rows = spec.series.flatMap((s) =>
    s.points.map((p) => (spec.kind === "intervals" ? [cell(s.name), p.x, p.low, p.high] : [cell(s.name), p.x, p.y, p.low, p.high]).join(",")),
  );
  const head = spec.kind === "intervals" ? "quantity,value,low,high" : ["series", cell(spec.x || "x"), cell(spec.y || "y"), "low", "high"].join(",");
  return [head, ...rows].join("\n") + "\n";
}

/** Least squares through the logarithms. */
export function slopeOf(points: Point[]): { slope: number; at: (x: number) => number } | null {
  const logs = points.filter((p) => p.x > 0 && p.y > 0).map((p) => [Math.log(p.x), Math.log(p.y)] as const);
  if (logs.length < 3) return null;
  const mean = (i: 0 | 1) => logs.reduce((sum, p) => sum + p[i], 0) / logs.length;
  const [mx, my] = [mean(0), mean(1)];
  const slope = logs.reduce((s, [x, y]) => s + (x - mx) * (y - my), 0) / logs.reduce((s, [x]) => s + (x - mx) ** 2, 0);
  return { slope, at: (x) => Math.exp(my + slope * (Math.log(x) - mx)) };
}
