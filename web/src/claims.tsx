// The table of all claims: what was measured beside what was published.
import { useState } from "preact/hooks";
import { type Claim, foundOf, type Result, type Source } from "./data.ts";
import { measured, num } from "./format.ts";
import { Mark, Prose, type State, stateOf } from "./parts.tsx";

const FILTERS: (State | "all")[] = ["all", "holds", "fails", "undecided", "not run"];

const MOST = 3; // sizes, ours or published, of a claim that are in the table; the others are a click away

/** What the rule looked at, with its size and interval: "A minus B is 0.2 [0.1, 0.3]". */
function Effect({ clause }: { clause: string }) {
  const [, name, size, low, high] = /^(.*) is (-?[\d.]+(?:e[+-]?\d+)?)(?: \[(.*), (.*)\])?$/.exec(clause) ?? [];
  if (name === undefined) return <div><Prose text={clause} /></div>;
  const number = (text: string | undefined) => (text === undefined || Number.isNaN(Number(text)) ? null : Number(text));
  const [value, bounds] = measured(Number(size), number(low), number(high));
  return <div>{name} <b><data value={size}>{value}</data></b>{bounds && <> <span class="quiet bounds">{bounds}</span></>}</div>;
}

const More = ({ than }: { than: number }) => (than > MOST ? <div class="quiet">and {than - MOST} more</div> : null);

function Ours({ result }: { result: Result | undefined }) {
  if (!result) return <span class="quiet">–</span>;
  const clauses = foundOf(result).split("; ");
  return (
    <>
      {clauses.slice(0, MOST).map((clause) => <Effect key={clause} clause={clause} />)}
      <More than={clauses.length} />
    </>
  );
}

function PublishedCell({ claim }: { claim: Claim }) {
  const published = claim.best?.published ?? [];
  const numbers = published.filter((p) => p.value !== null);
  if (numbers.length > 0) return <>{numbers.slice(0, MOST).map((p) => <div key={p.name}><Prose text={p.name} /> <b><data value={p.value!}>{num(p.value)}</data></b></div>)}<More than={numbers.length} /></>;
  return published[0] ? <div><Prose text={published[0].name} /></div> : <span class="quiet">–</span>;
}

function Row({ claim, both }: { claim: Claim; both: boolean }) {
  const cell = (result: Result | undefined) => (result ? <><Mark state={result.verdict} word /><span class="quiet mode">{result.mode}</span></> : claim.best ? <span class="quiet"><span aria-hidden="true">–</span><span class="sr">not run</span></span> : <Mark state="not run" word />);
  return (
    <tr data-claim={claim.id}>
      <th scope="row"><a href={`#${claim.id}`}>{claim.id}</a><span class="statement"><Prose text={claim.statement} /></span></th>
      {both && <td data-label="here" data-verdict={claim.here?.verdict ?? "not run"}>{cell(claim.here)}</td>}
      <td data-label={both ? "kept" : "verdict"} data-verdict={(both ? claim.kept : claim.best)?.verdict ?? "not run"}>{cell(both ? claim.kept : claim.best)}</td>
      <td data-label="ours" class="figures"><Ours result={claim.best} /></td>
      <td data-label="published" class="figures"><PublishedCell claim={claim} /></td>
    </tr>
  );
}

export function Claims({ sources }: { sources: (Source & { claims: Claim[] })[] }) {
  const [filter, setFilter] = useState<State | "all">("all");
  const all = sources.flatMap((source) => source.claims);
  const both = all.some((claim) => claim.here) && all.some((claim) => claim.kept);
  const count = (state: State | "all") => all.filter((claim) => state === "all" || stateOf(claim) === state).length;
  return (
    <>
      <div class="filters" role="group" aria-label="show claims">
        {FILTERS.filter((state) => count(state) > 0).map((state) => (
          <button key={state} type="button" aria-pressed={filter === state} onClick={() => setFilter(state)}>
            {state === "all" ? "all" : <Mark state={state} word />} {count(state)}
          </button>
        ))}
      </div>
      <table class="claims">
        <thead>
          <tr>
            <th scope="col">claim</th>
            {both && <th scope="col">here</th>}
            <th scope="col">{both ? "kept" : "verdict"}</th>
            <th scope="col">ours, with its interval</th>
            <th scope="col">published</th>
          </tr>
        </thead>
        {sources.map((source) => {
          const shown = source.claims.filter((claim) => filter === "all" || stateOf(claim) === filter);
          if (shown.length === 0) return null;
          return (
            <tbody key={source.id}>
              <tr class="group"><th scope="rowgroup" colSpan={both ? 5 : 4}>{source.title}</th></tr>
              {shown.map((claim) => <Row key={claim.id} claim={claim} both={both} />)}
            </tbody>
          );
        })}
      </table>
    </>
  );
}
