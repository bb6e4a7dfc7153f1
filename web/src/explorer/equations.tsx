// The equations of a layer; what they name shows its values at the token.
import { useState } from "preact/hooks";
import { num } from "../format.ts";
import { Value } from "../parts.tsx";
import type { Question, Term } from "./ask.ts";
import { useAnswer } from "./ask.ts";

/** w_ts and S are of the token; q_t and k_s are q and k. */
const termOf = (terms: Record<string, Term>, name: string): [string, Term] | null => {
  for (const key of [name, name.replace(/_[ts]$/, "")]) if (terms[key]) return [key, terms[key]!];
  return null;
};

/** Numbers as bars, up and down from a line. */
function Bars({ values }: { values: number[] }) {
  const most = Math.max(...values.map(Math.abs), 1e-300), w = 600 / values.length;
  return (
    <svg class="bars" viewBox="0 -30 600 60" preserveAspectRatio="none" aria-hidden="true">
      <line x1="0" x2="600" stroke="var(--line)" vector-effect="non-scaling-stroke" />
      {values.map((v, i) => <rect key={i} x={i * w} width={Math.max(w * 0.85, 0.4)} y={v < 0 ? 0 : (-28 * v) / most} height={(28 * Math.abs(v)) / most} fill={v < 0 ? "var(--s1)" : "var(--s0)"} />)}
    </svg>
  );
}

function TermValues({ name, term, head, word }: { name: string; term: Term; head: number; word: string }) {
  if (!term.values)
    return (
      <p>
        <b>{name}</b> is {term.shape!.join(" × ")} numbers of norm <Value of={term.norm} />
        {term.least !== undefined && <>, from <Value of={term.least} /> to <Value of={term.largest} /></>}.
      </p>
    );
  const row = term.values[Math.min(head, term.values.length - 1)]!.map((v) => v ?? 0), first = row.slice(0, 8);
  return (
    <>
      <p>
        <b>{name}</b> at “{word}”{term.heads! > 1 && `, head ${Math.min(head, term.heads! - 1) + 1} of ${term.heads}`}: {row.length === 1 ? <Value of={row[0]} /> : <>{row.length} numbers of norm <Value of={Number(Math.hypot(...row).toPrecision(4))} /></>}
        {name === "w_ts" && ", divided as the output is"}
      </p>
      {row.length > 1 && <Bars values={row} />}
      {row.length > 1 && <p class="numbers-line">{first.map((v, i) => <data key={i} value={v}>{num(v, 3)}</data>)}{row.length > first.length && " …"}</p>}
    </>
  );
}

export function Equations({ lines, question, head, words }: { lines: string[]; question: Question; head: number; words: string[] }) {
  const { data, error } = useAnswer("terms", question);
  const [shown, setShown] = useState<string | null>(null);
  const terms = data?.terms ?? {}, found = shown === null ? null : termOf(terms, shown);
  return (
    <div class="equations">
      <div class="lines">
        {lines.map((text, i) => (
          <div key={i}>
            {text.split(/([A-Za-z][A-Za-z_0-9]*)/).map((part, j) =>
              j % 2 === 1 && termOf(terms, part)
                ? <button key={j} type="button" class="term" aria-pressed={part === shown} onPointerEnter={() => setShown(part)} onFocus={() => setShown(part)} onClick={() => setShown(part)}>{part}</button>
                : part)}
          </div>
        ))}
      </div>
      <div class="term-values" role="status">
        {error ? <p>{error}</p> : found && data ? <TermValues name={found[0]} term={found[1]} head={head} word={words[data.token] ?? ""} /> : <p class="quiet">Point at a name to see its values at the chosen token.</p>}
      </div>
    </div>
  );
}
