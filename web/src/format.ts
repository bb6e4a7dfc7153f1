// Numbers for people. What is exact stands in the value of a <data> element and in exported files.

const SUPERSCRIPT: Record<string, string> = { "-": "⁻", "0": "⁰", "1": "¹", "2": "²", "3": "³", "4": "⁴", "5": "⁵", "6": "⁶", "7": "⁷", "8": "⁸", "9": "⁹" };

export const superscript = (n: number): string => [...String(n)].map((c) => SUPERSCRIPT[c] ?? c).join("");

const minus = (text: string): string => text.replace(/^-/, "−");

/** No line ends within a number. */
const TIMES = "\u00a0×\u00a0";

/** At most so many significant digits, without zeros at the end. */
export function num(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e4) return minus(String(Number(value.toPrecision(digits))));
  if (size >= 1e4 && size < 1e15 && (size < 1e5 || Number.isInteger(value))) return minus(grouped(size < 1e5 ? Number(value.toPrecision(digits)) : value));
  const [mantissa = "", exponent = ""] = value.toExponential(Math.min(digits, 3) - 1).split("e");
  const power = "10" + superscript(Number(exponent));
  const factor = String(Number(mantissa));
  return factor === "1" ? power : minus(factor) + TIMES + power;
}

/** So many digits that values which differ are written differently, up to six; three at least. */
export function digitsOf(values: number[]): number {
  const all = [...new Set(values)];
  for (let digits = 3; digits < 6; ++digits) if (new Set(all.map((v) => num(v, digits))).size === all.length) return digits;
  return 6;
}

/** Numbers of a column or an axis, with as many decimals as the large ones need, more where that is too few; on an axis, where all are `exact`, as any one needs. */
export function alike(values: number[], digits = 4, exact = false): string[] {
  const largest = Math.max(...values.map(Math.abs)), leading = exact ? values : values.filter((v) => Math.abs(v) >= largest / 10);
  const decimals = Math.max(...leading.map((v) => String(Number(v.toPrecision(digits))).split(".")[1]?.length ?? 0));
  if (largest < 1e-3 || largest >= 1e4 || decimals > 5) return values.map((v) => num(v, digits));
  const coarse = (v: number) => v === 0 || Math.abs(Number(v.toFixed(decimals)) - v) > 0.05 * Math.abs(v);
  return values.map((v) => (coarse(v) ? num(v, 2) : minus(v.toFixed(decimals))));
}

/** Thousands apart by thin spaces. */
export const grouped = (value: number): string => Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");

/** A value and its interval, in two digits of the interval's width; the interval is empty text where there is none. */
export function measured(value: number | null, low: number | null, high: number | null): [string, string] {
  if ((low === null && high === null) || low === high) return [num(value), ""];
  const all = [value, low, high], known = all.filter((v) => v !== null), largest = Math.max(...known.map(Math.abs));
  const step = Math.floor(Math.log10(Math.max(...known) - Math.min(...known))) - 1;
  const tell = (v: number): string => {
    if (largest < 1e-3 || largest >= 1e5 || step < -5) return num(v, 3);
    if (step > 0) return num(Math.round(v / 10 ** step) * 10 ** step, 6);
    const text = v.toFixed(-step);
    return Number(text) === 0 ? text.replace("-", "") : minus(text);
  };
  const bounds = `[${low === null ? "−∞" : tell(low)}, ${high === null ? "∞" : tell(high)}]`;
  return [value === null ? num(value) : tell(value), bounds];
}

export function duration(seconds: number): string {
  if (seconds < 1) return "under a second";
  if (seconds < 90) return `${num(seconds, 2)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${num(seconds / 3600, 2)} h`;
}

export const plural = (n: number, one: string, many = one + "s"): string => `${n} ${n === 1 ? one : many}`;

const NUMBER = String.raw`-?\d+(?:\.\d+)?(?:e[+-]?\d+)?`;
const WITH_INTERVAL = new RegExp(String.raw`(${NUMBER}) \[(${NUMBER}), (${NUMBER})\]`, "g");

/** A sentence of the program as one would print it: 3.4e-05 as 3.4 × 10⁻⁵, values in the digits of their intervals, d^2 as d², 3 x 3 as 3 × 3. */
export const typeset = (text: string): string =>
  text
    .replace(WITH_INTERVAL, (_, value: string, low: string, high: string) => measured(Number(value), Number(low), Number(high)).join(" "))
    .replace(/\^(-?\d+)(?![\d/.])/g, (_, power: string) => superscript(Number(power)))
    .replaceAll(">=", "≥")
    .replaceAll("+-", "±")
    .replace(/(\b\d+|\b[A-Zd]) x (?=(?:\d|[A-Zd]\b))/g, `$1${TIMES}`)
    .replaceAll(" - ", " −\u00a0")
    .replace(/(\d(?:\.\d+)?)e([+-]?\d+)/g, (_, digits: string, power: string) => (digits === "1" ? "" : digits + TIMES) + "10" + superscript(Number(power)))
    .replace(/(^|[\s[(])-(?=\d)/g, "$1−");
