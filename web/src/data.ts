// What the program places into the page. A page and its program are of one version, so `schema` differs only in a file that was made by hand.

export const SCHEMA = 1;

export type Verdict = "holds" | "fails" | "undecided";
export type Mode = "quick" | "full";

/** A number that was not finite is null. */
export type Num = number | null;

export interface Measured { name: string; value: Num; low: Num; high: Num; n: number; unit: string }
export interface Published { name: string; value: Num; where: string }
export interface FigureData {
  kind: string;
  x: string;
  y: string;
  caption: string;
  /** Of x = 0, 1, 2, …, where it is no number. */
  names?: string[];
  /** Quantities that are drawn as lines across. */
  levels?: string[];
  /** With the points that no other one beats by less x and more y. */
  front?: boolean;
  /** Series of one group are drawn alike. */
  series: { name: string; group?: string; points: [Num, Num, Num, Num][] }[];
}
export interface Machine { cpu?: string; isa?: string; cores?: number; threads?: number; compiler?: string; version?: string }

export interface Result {
  id: string;
  source: string;
  statement: string;
  quantity: string;
  rule: string;
  verdict: Verdict;
  why: string;
  /** The end of why: the claim's own words where it does not hold. */
  reason: string;
  measured: Measured[];
  published: Published[];
  figure: FigureData;
  mode: Mode;
  seeds: number;
  cells: number;
  command: string;
  machine: Machine;
  version: string;
  seconds: number;
}

export interface Source { id: string; title: string; about: string }
export interface ClaimEntry { id: string; source: string; statement: string; quantity: string; rule: string; trained: boolean }

export interface Head {
  law: string;
  head: number;
  channels: number;
  features: number;
  averaged: boolean;
  /** False: it sees whole sequences, rows of the matrix are whole, and there is no state. */
  causal: boolean;
  matrix: Num[][];
  sizes: [Num, Num][];
  angles: [Num, Num][];
  horizon: Num;
  unfinished: Num;
  norm: Num[];
  rank: Num[];
  /** Of Λ at the last token: real and imaginary parts; null where there are too many. */
  eigenvalues: [Num, Num][] | null;
}
export interface MixerOption { name: string; value: string; default: string; help: string; kind: "size" | "number" | "limit" | "flag" | "choice"; least: number; choices: string[] }
/** A mixer on a sentence, by the Dynamical Systems view. */
export interface MixerView {
  preset: string;
  law: string;
  source: string;
  summary: string;
  equations: string[];
  options: MixerOption[];
  /** Settings that are not the preset's own. */
  changed: Record<string, string>;
  words: string[];
  heads: Head[];
  influence: Num[][];
}

export interface StudyData {
  schema: number;
  kind: "study";
  version: string;
  problems: string[];
  sources: Source[];
  claims: ClaimEntry[];
  results: Result[];
  kept: Result[];
  mixers: MixerView[];
}

export interface Run {
  run: string;
  task?: string;
  layers?: string;
  state?: string;
  step?: number;
  steps?: number;
  seconds?: number;
  loss?: Num;
  metric?: string;
  value?: Num;
  test_loss?: Num;
  tokens_per_s?: Num;
  parameters?: number;
  problem?: string;
  lines: number;
  train: Record<"step" | "seconds" | "loss" | "lr" | "grad_norm" | "tokens_per_s", Num[]>;
  eval: Record<"step" | "seconds" | "loss" | "value", Num[]>;
}

export interface RunsData { schema: number; kind: "runs"; version: string; problems: string[]; runs: Run[] }

/** What the explorer begins with; the program answers the rest (explorer/ask.ts). */
export interface ExploreData {
  schema: number;
  kind: "explore";
  version: string;
  presets: { preset: string; law: string }[];
  /** The folder of the trained run, if there is one. */
  run: string | null;
  text: string;
  /** Presets; null is the run. */
  left: string | null;
  right: string;
}

export type Data = StudyData | RunsData | ExploreData;

/** The data of the page, or a sentence that says why there is none. */
export function readData(text: string): Data | string {
  let data: Data | null;
  try {
    data = JSON.parse(text) as Data | null;
  } catch {
    return "The data of this page is damaged: it is not JSON. Write the page again with isomer report.";
  }
  if (data === null || typeof data !== "object" || data.kind === undefined)
    return "This page has no data yet: isomer report writes it with the results of a study or the curves of runs.";
  if (data.schema !== SCHEMA)
    return `The data of this page has schema ${data.schema}, and the page reads schema ${SCHEMA}. Write it again with one version of isomer report.`;
  return data;
}

/** One claim with what is known of it: measured here, kept in the repository, both or neither. */
export interface Claim extends ClaimEntry {
  here?: Result;
  kept?: Result;
  /** What decides: a full result before a quick one, this machine's before the kept one. */
  best?: Result;
}

export function claimsOf(data: StudyData): Claim[] {
  const all = new Map<string, Claim>();
  for (const entry of data.claims) all.set(entry.id, { ...entry });
  const add = (result: Result, where: "here" | "kept") => {
    const claim = all.get(result.id) ?? { ...result, trained: result.cells > 0 };
    // The words of the result are those that were decided.
    all.set(result.id, { ...claim, statement: result.statement, quantity: result.quantity, rule: result.rule, [where]: result });
  };
  data.kept.forEach((result) => add(result, "kept"));
  data.results.forEach((result) => add(result, "here"));
  for (const claim of all.values()) {
    const { here, kept } = claim;
    claim.best = here && kept && here.mode === "quick" && kept.mode === "full" ? kept : here ?? kept;
    if (claim.best) Object.assign(claim, { statement: claim.best.statement, quantity: claim.best.quantity, rule: claim.best.rule });
  }
  return [...all.values()];
}

/** What was found, without the reason, which stands by itself. */
export const foundOf = ({ why, reason }: Result): string => (reason && why.endsWith(`; ${reason}`) ? why.slice(0, -reason.length - 2) : why);

/** The sources in the order of the program, then those that it does not know. */
export function sourcesOf(data: StudyData, claims: Claim[]): (Source & { claims: Claim[] })[] {
  const known = new Set(data.sources.map((source) => source.id));
  const others = [...new Set(claims.map((claim) => claim.source))].filter((id) => !known.has(id));
  return [...data.sources, ...others.map((id) => ({ id, title: id, about: "" }))]
    .map((source) => ({ ...source, claims: claims.filter((claim) => claim.source === source.id) }))
    .filter((source) => source.claims.length > 0);
}
