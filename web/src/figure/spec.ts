// A figure as data: what it shows, apart from how it is drawn.
import type { FigureData, Measured, Num, Result } from "../data.ts";
import { alike, digitsOf, num } from "../format.ts";
import { csvCell } from "./saving.tsx";

export interface Point { x: number; y: number; low: number; high: number }
export interface Series { name: string; points: Point[]; group?: string }
export type Kind = "lines" | "loglog" | "bars" | "matrix" | "scatter" | "intervals" | "plane";

export interface Spec {
  kind: Kind;
  x: string;
  y: string;
  series: Series[];
  caption: string;
  /** Straight lines through a loglog figure, with their slopes. */
  fits?: boolean;
  /** Published values, by the name of a series of `intervals`, or by "SERIES, NAME OF X". */
  published?: Map<string, number>;
  /** Of x = 0, 1, 2, …, where it is no number. */
  names?: string[];
  /** Lines across. */
  levels?: { name: string; point: Point }[];
  /** With a line through the points that no other one beats by less x and more y. */
  front?: boolean;
  /** Values go up a logarithmic axis. */
  logY?: boolean;
}

const KINDS: Kind[] = ["lines", "loglog", "bars", "matrix", "scatter"];

const point = ([x, y, low, high]: [Num, Num, Num, Num]): Point[] =>
  x === null || y === null ? [] : [{ x, y, low: low ?? y, high: high ?? y }];

function seriesOf(figure: FigureData): Series[] {
  return figure.series.map((series) => ({ name: series.name, group: series.group, points: series.points.flatMap(point) })).filter((series) => series.points.length > 0);
}

/** What a search has chosen: shown in no figure, and folded in tables. */
export const isRate = (m: Measured): boolean => m.unit === "learning rate" || m.name.startsWith("learning rate of ");

const isDifference = (m: Measured): boolean => m.name.includes(" minus ");

/** Quantities on one axis say something only if they are of one kind: that of the figure if it has one, else of the first. */
function comparable(result: Result): Measured[] {
  const all = result.measured.filter((m) => m.value !== null && !isRate(m)), whole = all.filter((m) => !isDifference(m));
  const values = whole.length >= 2 ? whole : all;
  const unit = result.figure.y || values[0]?.unit;
  const alike = values.filter((m) => m.unit === unit);
  if (alike.length < 2) return [];
  if (result.figure.y) return alike;
  const sizes = alike.map((m) => Math.abs(m.value!)).filter((v) => v > 0);
  return sizes.length > 0 && (Math.max(...sizes) / Math.min(...sizes) < 1e6 || sizes.length < alike.length) ? alike : [];
}

const publishedOf = (result: Result): Map<string, number> => new Map(result.published.flatMap((p) => (p.value === null ? [] : [[p.name, p.value] as const])));

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** What to see first: the largest and the smallest. */
function extremes(all: { name: string; value: number }[]): string {
  const sorted = [...all].sort((a, b) => b.value - a.value), most = sorted[0]!, least = sorted.at(-1)!;
  const sizes = [most.value, least.value], [large, small] = alike(sizes, digitsOf(sizes));
  if (most.value === least.value) return `all are ${num(most.value, 3)}`;
  return `“${most.name}” (${large}) is the largest and “${least.name}” (${small}) the smallest`;
}

const WIDE = 20; // how far apart amounts are that ask for a logarithmic axis
const MANY = 12; // quantities that are found faster in order

/** What all names end with after a comma, or begin with before "of", says nothing in a figure. */
function withoutShared(names: string[]): string[] {
  const end = /, [^,]*$/.exec(names[0] ?? "")?.[0], start = /^.*? of /.exec(names[0] ?? "")?.[0];
  if (names.length < 2) return names;
  if (end && names.every((name) => name.endsWith(end))) return names.map((name) => name.slice(0, -end.length));
  return start && names.every((name) => name.startsWith(start)) ? names.map((name) => name.slice(start.length)) : names;
}

/** Without what is but the largest or the least of the others. */
function withoutSummary(all: Measured[]): Measured[] {
  const rest = all.filter((m) => !/^(largest|least|smallest) /.test(m.name) || !all.some((other) => other !== m && other.value === m.value));
  return rest.length >= 2 ? rest : all;
}

function intervalsOf(result: Result, shown: Measured[]): Spec {
  shown = withoutSummary(shown);
  if (shown.length > MANY) shown = [...shown].sort((a, b) => b.value! - a.value!);
  const names = withoutShared(shown.map((m) => m.name)), all = publishedOf(result);
  const published = new Map(shown.flatMap((m, i) => (all.has(m.name) ? [[names[i]!, all.get(m.name)!] as const] : [])));
  const series = shown.map((m, i) => ({ name: names[i]!, points: [{ x: m.value!, y: 0, low: m.low ?? m.value!, high: m.high ?? m.value! }] }));
  const seeds = shown.some((m) => m.n > 1) ? ", with their intervals over seeds" : "";
  const known = published.size > 0 ? "; diamonds are published" : "";
  const seen = extremes(series.map((s) => ({ name: s.name, value: s.points[0]!.x })));
  const own = result.figure.caption.replace(/\.$/, "");
  const caption = own ? `${own}${own.includes(":") ? ";" : ":"} ${seen}${own.includes("diamond") ? "" : known}.` : sentence(`${seen}${seeds}${known}`);
  return { kind: "intervals", x: shown[0]?.unit ?? "", y: "", series, caption, published };
}

/** The figure of a result; of one without series, its quantities; nothing where a number says it all. */
export function specOf(result: Result): Spec | null {
  const { figure } = result;
  const series = seriesOf(figure);
  if (series.length === 0) {
    const shown = comparable(result);
    return shown.length > 0 ? intervalsOf(result, shown) : null;
  }
  const kind = KINDS.find((k) => k === figure.kind) ?? "lines";
  const ends = series.map((s) => ({ name: s.name, value: s.points.at(-1)!.y }));
  const caption = figure.caption || sentence(`${extremes(ends)}${series.some((s) => s.points.length > 1) ? " at the end" : ""}`);
  const levels = (figure.levels ?? []).flatMap((name) => {
    const m = result.measured.find((one) => one.name === name);
    return m && m.value !== null ? [{ name, point: { x: 0, y: m.value, low: m.low ?? m.value, high: m.high ?? m.value } }] : [];
  });
  const fits = kind === "loglog" && /\bslope/.test(result.rule);
  // Perplexities and the like: beside the largest the others would be one line.
  const sizes = series.flatMap((s) => s.points.flatMap((p) => [p.y, p.low])), logY = kind === "lines" && series.length > 1 && Math.min(...sizes) >= 1 && Math.max(...sizes) > WIDE * Math.min(...sizes);
  return { kind, logY, x: figure.x, y: figure.y, series, caption, fits, levels, front: figure.front, names: figure.names, published: figure.names && publishedOf(result) };
}

/** What a picture says in words, for those who do not see it. */
export function describe(spec: Spec): string {
  const names = spec.series.map((s) => s.name);
  const shown = names.length > 8 ? `${names.slice(0, 8).join(", ")} and ${names.length - 8} more` : names.join(", ");
  const axes = spec.kind === "intervals" ? "measured values" : `${spec.y || "value"} against ${spec.x || "setting"}`;
  return `${spec.caption} ${axes}: ${shown}. The numbers are in the data table below.`;
}

/** The name of an x, or its number. */
export const nameOf = (spec: Spec, x: number): string => spec.names?.[x] ?? num(x);

export function csvOf(spec: Spec): string {
  const rows = spec.series.flatMap((s) =>
    s.points.map((p) => (spec.kind === "intervals" ? [csvCell(s.name), p.x, p.low, p.high] : [csvCell(s.name), p.x, p.y, p.low, p.high]).join(",")),
  );
  const head = spec.kind === "intervals" ? "quantity,value,low,high" : ["series", csvCell(spec.x || "x"), csvCell(spec.y || "y"), "low", "high"].join(",");
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
