// Axes: where a value stands, and which values are named.
import { scaleLinear, scaleLog } from "d3-scale";
import { alike, num, superscript } from "../format.ts";

export interface Tick { value: number; label: string }
export interface Axis { at: (value: number) => number; ticks: Tick[]; log: boolean; domain: [number, number] }

export interface AxisOptions {
  log: boolean;
  range: [number, number];
  /** Values that are named if there is room for them. */
  prefer?: number[];
  /** Pixels that a label needs. */
  room: number;
  /** The axis begins at zero. */
  zero?: boolean;
  /** The axis ends where the values do, and zero is no part of it by itself. */
  exact?: boolean;
}

/** Powers of ten; those of one axis are written alike. */
function decades(powers: number[]): Tick[] {
  const small = powers.every((p) => Math.abs(p) <= 3);
  return powers.map((p) => ({ value: 10 ** p, label: small || p === 0 ? String(Number(`1e${p}`)) : p === 1 ? "10" : "10" + superscript(p) }));
}

function logTicks([low, high]: [number, number], count: number): Tick[] {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const powers = last - first + 1;
  if (powers > 2 || (powers === 2 && count < 4)) {
    const step = Math.max(1, Math.ceil(powers / Math.max(2, count)));
    return decades(Array.from({ length: Math.ceil(powers / step) }, (_, i) => first + i * step));
  }
  return scaleLog([low, high], [0, 1]).ticks(count).filter((v) => /^[125]/.test(v.toExponential())).map((value) => ({ value, label: num(value) }));
}

const distinct = (values: number[]): number[] => [...new Set(values)].sort((a, b) => a - b);

/** Values that were chosen by doubling or the like stand evenly on a logarithmic axis. */
export function geometric(values: number[]): boolean {
  const all = distinct(values);
  if (all.length < 3 || all[0]! <= 0 || all.at(-1)! / all[0]! < 8) return false;
  const ratios = all.slice(1).map((v, i) => v / all[i]!);
  return Math.min(...ratios) > 1.3 && Math.max(...ratios) / Math.min(...ratios) < 2.6;
}

function apart(values: number[], at: (v: number) => number, room: number): boolean {
  const places = values.map(at).sort((a, b) => a - b);
  return places.every((place, i) => i === 0 || place - places[i - 1]! >= room);
}

export function axisOf(values: number[], options: AxisOptions): Axis {
  const { range, room, prefer } = options;
  const finite = values.filter((v) => Number.isFinite(v) && (!options.log || v > 0));
  let [low, high] = finite.length > 0 ? [Math.min(...finite), Math.max(...finite)] : options.log ? [1, 10] : [0, 1];
  const count = Math.max(2, Math.floor(Math.abs(range[1] - range[0]) / room));
  if (options.log) {
    const pad = low === high ? 0.5 : (Math.log10(high) - Math.log10(low)) * 0.03;
    const domain: [number, number] = [10 ** (Math.log10(low) - pad), 10 ** (Math.log10(high) + pad)];
    const scale = scaleLog(domain, range);
    const at = (v: number) => scale(v > 0 ? Math.max(v, domain[0]) : domain[0]);
    return { at, ticks: preferred(prefer, at, room) ?? logTicks(domain, Math.min(count, 7)), log: true, domain };
  }
  if (options.zero || (!options.exact && low > 0 && low < 0.5 * high)) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  if (low === high) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  const scale = scaleLinear([low, high], range);
  if (!prefer && !options.exact) scale.nice(Math.min(count, 6));
  const at = (v: number) => scale(v);
  const ticks = preferred(prefer, at, room) ?? named(scale.ticks(Math.min(count, 6)));
  const [a = low, b = high] = scale.domain();
  return { at, ticks, log: false, domain: [a, b] };
}

function named(values: number[]): Tick[] {
  const labels = alike(values, 6, true);
  return values.map((value, i) => ({ value, label: labels[i]! }));
}

function preferred(prefer: number[] | undefined, at: (v: number) => number, room: number): Tick[] | null {
  if (!prefer) return null;
  const all = distinct(prefer);
  const short = all.every((v) => num(v, 4).length <= 5 && Math.abs(Number(v.toPrecision(4)) - v) <= 1e-9 * Math.abs(v));
  return all.length >= 2 && all.length <= 9 && short && apart(all, at, room) ? all.map((value) => ({ value, label: num(value) })) : null;
}

/** Letters by their width, in parts of the size of the font: of DejaVu Sans, which is wider than most. */
const WIDTHS: [RegExp, number][] = [[/[ijlI'|.,:;! ()[\]/-]/g, 0.34], [/[frt⁰-₎¹²³]/g, 0.42], [/[A-Z]/g, 0.7], [/[mwMW%−×=+±→≥]/g, 0.86]];
const USUAL = 0.62;

/** A guess that is good enough to place text. */
export const textWidth = (text: string, size = 12): number => size * WIDTHS.reduce((sum, [letters, width]) => sum + (width - USUAL) * (text.match(letters)?.length ?? 0), USUAL * text.length);

/** Moves labels apart, in order, within a range. */
export function spread(places: number[], gap: number, [from, to]: [number, number]): number[] {
  const order = places.map((_, i) => i).sort((a, b) => places[a]! - places[b]!);
  const out = [...places];
  let next = from;
  for (const i of order) {
    out[i] = Math.max(out[i]!, next);
    next = out[i]! + gap;
  }
  let bound = to;
  for (const i of [...order].reverse()) {
    out[i] = Math.min(out[i]!, bound);
    bound = out[i]! - gap;
  }
  return out;
}
