// The page of the study: the question, the verdicts, the figures that carry the story, then every claim of every source.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Claims } from "./claims.tsx";
import { type Claim, claimsOf, type Result, type Source, sourcesOf, type StudyData } from "./data.ts";
import { ClaimSection, Leads } from "./claim.tsx";
import { Explore } from "./explore.tsx";
import { duration, plural } from "./format.ts";
import { machineText, Mark, Problems, scrollToAddress, type State, stateOf, ThemeButton } from "./parts.tsx";

/** What is measured across the sources is none of them. */
const ACROSS = "across";

type WithClaims = Source & { claims: Claim[] };
const STATES: State[] = ["holds", "fails", "undecided", "not run"];

function Counts({ claims }: { claims: Claim[] }) {
  return (
    <ul class="counts" aria-label="verdicts">
      {STATES.map((state) => {
        const count = claims.filter((claim) => stateOf(claim) === state).length;
        if (count === 0 && state === "not run") return null;
        return <li key={state} data-count={state}><b>{count}</b> <Mark state={state} word many={count !== 1} /></li>;
      })}
    </ul>
  );
}

/** Every claim as one mark, a row for each source. */
function Mosaic({ sources }: { sources: WithClaims[] }) {
  return (
    <div class="mosaic">
      {sources.map((source) => (
        <div key={source.id} class="mosaic-row">
          <a href={`#${source.id}`}>{source.title}</a>
          <span>
            {source.claims.map((claim) => (
              <a key={claim.id} href={`#${claim.id}`} title={`${claim.id}: ${stateOf(claim)}`}>
                <Mark state={stateOf(claim)} />
                <span class="sr">{claim.id}</span>
              </a>
            ))}
          </span>
        </div>
      ))}
    </div>
  );
}

function Contents({ sources }: { sources: WithClaims[] }) {
  return (
    <nav class="contents" aria-label="contents">
      <a href="#top">The question</a>
      <a href="#figures">Figures that carry the story</a>
      <a href="#claims">All claims</a>
      <a href="#explore">Any mixer as an attention map</a>
      {sources.map((source) => <a key={source.id} href={`#${source.id}`}>{source.title}</a>)}
      <a href="#made">How it was made</a>
    </nav>
  );
}

function SourceSection({ source }: { source: WithClaims }) {
  return (
    <section id={source.id} class="source" aria-labelledby={`${source.id}-title`}>
      <h2 id={`${source.id}-title`}>{source.title}</h2>
      {source.about && <p class="about">{source.about}</p>}
      {source.claims.map((claim) => <ClaimSection key={claim.id} claim={claim} />)}
    </section>
  );
}

function Made({ data }: { data: StudyData }) {
  const groups = new Map<string, Result[]>();
  for (const [where, results] of [["measured here", data.results], ["kept", data.kept]] as const)
    for (const result of results) {
      const key = [where, result.mode, machineText(result.machine), result.version].join("\n");
      groups.set(key, [...(groups.get(key) ?? []), result]);
    }
  return (
    <section id="made" aria-labelledby="made-title">
      <h2 id="made-title">How it was made</h2>
      <p>
        Every number on this page comes from the result files of <code>isomer study</code>; the page itself was written by <code>isomer report</code>, version {data.version},
        and needs no network. A rule stands before any number is seen. It looks at an interval: over seeds a percentile bootstrap of 10,000 resamples at 95 %, of three seeds their range; for what no seed enters, the value and a bound of its error.
        So few seeds cover less than 95 % says: if seeds are normal, the interval of three holds the mean three times in four, that of five about five times in six. A verdict says that all seeds agree by the margin of the rule, not that they must.
      </p>
      <div class="scroll" role="region" tabIndex={0} aria-label="machines">
        <table class="machines">
          <thead><tr><th scope="col">results</th><th scope="col">mode</th><th scope="col">claims</th><th scope="col">machine</th><th scope="col">version</th><th scope="col">time</th></tr></thead>
          <tbody>
            {[...groups].map(([key, results]) => {
              const [where, mode, machine, version] = key.split("\n");
              return (
                <tr key={key}>
                  <th scope="row">{where}</th><td>{mode}</td><td>{results.length}</td><td>{machine}</td><td>{version}</td>
                  <td>{duration(results.reduce((sum, r) => sum + r.seconds, 0))}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** The same words for one set of results or for two. */
function standing(claims: Claim[]): string {
  const here = claims.filter((claim) => claim.here).length, kept = claims.filter((claim) => claim.kept).length;
  if (here > 0 && kept > 0) return "Where a claim was measured here and has a kept result, both are shown; a full result decides before a quick one.";
  if (kept > 0) return "These are the results that are kept with the program.";
  return "These are the results that were measured here.";
}

/** False until the first screen has been painted; where nobody looks, it is not waited for. */
function usePainted(): boolean {
  const [painted, setPainted] = useState(document.hidden);
  useEffect(() => {
    if (painted) return scrollToAddress();
    const frame = requestAnimationFrame(() => setTimeout(() => setPainted(true)));
    return () => cancelAnimationFrame(frame);
  }, [painted]);
  return painted;
}

export function Report({ data }: { data: StudyData }) {
  const claims = useMemo(() => claimsOf(data), [data]), sources = sourcesOf(data, claims);
  const painted = usePainted();
  const across = claims.filter((claim) => claim.source === ACROSS).length;
  const papers = sources.filter((source) => source.id !== ACROSS).length;
  return (
    <div class="page">
      <Contents sources={sources} />
      <main id="top" data-whole={painted}>
        <header class="masthead">
          <p class="eyebrow"><span>Isomer {data.version} · the study</span><ThemeButton /></p>
          <h1>What is true about softmax attention and its alternatives?</h1>
          <p class="lede">
            {plural(claims.length - across, "measurable statement")} of {plural(papers, "source")}{across > 0 && <>, and {across} about all mixers beside each other</>}: each an experiment with a rule for its verdict, run on a CPU. {standing(claims)}
          </p>
          <Problems all={data.problems} />
          <Counts claims={claims} />
          <p class="note">
            <b>Holds</b>: the whole interval over seeds says so. <b>Fails</b>: the whole interval says the opposite, which is a result like any other. <b>Undecided</b>: neither. <a href="#made">What the interval is worth</a>
          </p>
        </header>
        <Leads claims={claims} />
        {painted && (
          <>
            <section id="claims" aria-labelledby="claims-title">
              <h2 id="claims-title">All claims</h2>
              <Mosaic sources={sources} />
              <Claims sources={sources} />
            </section>
            {data.mixers.length > 0 && <Explore mixers={data.mixers} />}
            {sources.map((source) => <SourceSection key={source.id} source={source} />)}
            <Made data={data} />
          </>
        )}
      </main>
    </div>
  );
}
