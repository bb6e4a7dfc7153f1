// Numbers for people. What is exact stands in the value of a <data> element and in exported files.

const SUPERSCRIPT: Record<string, string> = { "-": "⁻", "0": "⁰", "1": "¹", "2": "²", "3": "³", "4": "⁴", "5": "⁵", "6": "⁶", "7": "⁷", "8": "⁸", "9": "⁹" };

export const superscript = (n: number): string => [...String(n)].map((c) => SUPERSCRIPT[c] ?? c).join("");

const minus = (text: string): string => text.replace(/^-/, "−");

/** At most so many significant digits, without zeros at the end. */
export function num(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e5) return minus(String(Number(value.toPrecision(digits))));
  if (size >= 1e5 && size < 1e15 && Number.isInteger(value)) return minus(grouped(value));
  const [mantissa = "", exponent = ""] = value.toExponential(Math.min(digits, 3) - 1).split("e");
  const power = "10" + superscript(Number(exponent));
  const factor = String(Number(mantissa));
  return factor === "1" ? power : minus(factor) + " × " + power;
}

/** So many digits that values which differ are written differently, up to six; three at least. */
export function digitsOf(values: number[]): number {
  const all = [...new Set(values)];
  for (let digits = 3; digits < 6; ++digits) if (new Set(all.map((v) => num(v, digits))).size === all.length) return digits;
  return 6;
}

/** Thousands apart by thin spaces. */
export const grouped = (value: number): string => Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");

export function interval(low: number | null, high: number | null, digits = 4): string {
  if (low === null && high === null) return "";
  if (low === high) return "";
  return `[${num(low ?? -Infinity, digits)}, ${num(high ?? Infinity, digits)}]`;
}

export function duration(seconds: number): string {
  if (seconds < 1) return "under a second";
  if (seconds < 90) return `${num(seconds, 2)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${num(seconds / 3600, 2)} h`;
}

export const plural = (n: number, one: string, many = one + "s"): string => `${n} ${n === 1 ? one : many}`;

/** Numbers within a sentence of the program, in the same digits: 3.4e-05 as 3.4 × 10⁻⁵. */
export const typeset = (text: string): string =>
  text
    .replace(/(\d(?:\.\d+)?)e([+-]?\d+)/g, (_, digits: string, power: string) => (digits === "1" ? "" : digits + " × ") + "10" + superscript(Number(power)))
    .replace(/(^|[\s[(])-(?=\d)/g, "$1−");
