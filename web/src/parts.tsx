// Small pieces that both pages have.
import { useEffect, useState } from "preact/hooks";
import type { Claim, Machine, Verdict } from "./data.ts";
import { num, typeset } from "./format.ts";

export type State = Verdict | "not run";
export const stateOf = (claim: Claim): State => claim.best?.verdict ?? "not run";

const MARKS: Record<State, preact.JSX.Element> = {
  holds: <><circle cx="8" cy="8" r="7.5" fill="currentColor" /><path d="M4.6 8.3l2.4 2.4 4.5-5" fill="none" stroke="var(--surface)" stroke-width="1.9" stroke-linecap="round" stroke-linejoin="round" /></>,
  fails: <><rect x="1" y="1" width="14" height="14" rx="2" fill="currentColor" /><path d="M5 5l6 6M11 5l-6 6" stroke="var(--surface)" stroke-width="1.9" stroke-linecap="round" /></>,
  undecided: <><path d="M8 1L15 8L8 15L1 8Z" fill="none" stroke="currentColor" stroke-width="1.8" /><path d="M5.4 8h5.2" stroke="currentColor" stroke-width="1.8" /></>,
  "not run": <circle cx="8" cy="8" r="6.5" fill="none" stroke="currentColor" stroke-width="1.3" stroke-dasharray="2.2 2.2" />,
};
const classOf = (state: State): string => state.replace(" ", "-");

/** Shape and colour of a verdict; the word stands beside it, or is read aloud. */
export function Mark({ state, word = false, many = false }: { state: State; word?: boolean; many?: boolean }) {
  return (
    <span class={`verdict ${classOf(state)}`}>
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">{MARKS[state]}</svg>
      <span class={word ? "" : "sr"}>{many ? state.replace(/s$/, "") : state}</span>
    </span>
  );
}

/** A number as it is rounded for people, with the exact one behind it. */
export function Value({ of, digits = 4 }: { of: number | null | undefined; digits?: number }) {
  return of === null || of === undefined ? <span>–</span> : <data value={of}>{num(of, digits)}</data>;
}

const POWERS = /(\^-?\w+(?:\/\d+)?|\^\([^)]*\)|(?<=\b[A-Za-z])_(?:\w{1,2}\b|\([^)]*\)))/;

/** A sentence of the program as one would print it, with its powers and indices: d^p, P_(s-1). */
export function Prose({ text }: { text: string }) {
  return (
    <>
      {text.split(POWERS).map((part, i) => {
        if (i % 2 === 0) return typeset(part);
        const inside = part.slice(1).replace(/^\((.*)\)$/, "$1").replace("-", "−");
        return part[0] === "^" ? <sup key={i}>{inside}</sup> : <sub key={i}>{inside}</sub>;
      })}
    </>
  );
}

export function Problems({ all }: { all: string[] }) {
  if (all.length === 0) return null;
  return (
    <aside class="problems" aria-label="files that were left out">
      <strong>{all.length === 1 ? "One file was left out" : `${all.length} files were left out`}</strong>
      <ul>{all.map((problem) => <li key={problem}>{problem}</li>)}</ul>
    </aside>
  );
}

export const machineText = (m: Machine): string =>
  [m.cpu, m.cores && `${m.cores} cores`, m.isa, m.compiler].filter(Boolean).join(" · ");

/** The element that the address names was not there when the page was read. */
export function scrollToAddress() {
  if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

type Theme = "light" | "dark";
const media = () => window.matchMedia("(prefers-color-scheme: dark)");

export function ThemeButton() {
  const [theme, setTheme] = useState<Theme>(media().matches ? "dark" : "light");
  const [chosen, setChosen] = useState(false);
  useEffect(() => {
    const query = media(), follow = () => chosen || setTheme(query.matches ? "dark" : "light");
    query.addEventListener("change", follow);
    return () => query.removeEventListener("change", follow);
  }, [chosen]);
  const other: Theme = theme === "dark" ? "light" : "dark";
  const change = () => {
    document.documentElement.dataset.theme = other;
    setTheme(other);
    setChosen(true);
  };
  return <button type="button" class="theme" onClick={change}>{other === "dark" ? "☾" : "☀"} {other}</button>;
}
