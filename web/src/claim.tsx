// One claim in full, and those claims whose figures lead.
import { type Claim, foundOf, type Published, type Result } from "./data.ts";
import { Figure } from "./figure/view.tsx";
import { isRate, specOf } from "./figure/spec.ts";
import { duration, measured, plural, typeset } from "./format.ts";
import { machineText, Mark, Prose, stateOf, Value } from "./parts.tsx";

/** The figures of the first screen: for each the claims that may carry it, the better first, with the question that they answer. */
const LEADS: { id: string; question: string }[][] = [
  [{ id: "softmax-rnn.orders", question: "How many terms of softmax does training need?" }, { id: "softmax-rnn.truncation", question: "How many terms of softmax are enough?" }],
  [{ id: "across.recall-state", question: "How much memory does recall need?" }, { id: "metala.state", question: "How much memory does recall need?" }, { id: "softmax-rnn.capacity", question: "What do higher orders buy?" }],
  [{ id: "large-prompt.slope", question: "When is softmax a linear map?" }],
];

const CROWD = 12; // series that want the whole width

export function Leads({ claims }: { claims: Claim[] }) {
  const leads = LEADS.flatMap((candidates) => {
    for (const { id, question } of candidates) {
      const claim = claims.find((c) => c.id === id), spec = claim?.best && specOf(claim.best);
      if (claim && spec) return [{ question, claim, spec, better: candidates[0]!.id, wide: spec.series.length > CROWD }];
    }
    return [];
  });
  // Two stand beside each other, and a crowd below them; what would be alone has the whole width.
  leads.sort((a, b) => Number(a.wide) - Number(b.wide));
  if (leads.filter((lead) => !lead.wide).length % 2 === 1) leads[0]!.wide = true;
  if (leads.length === 0) return null;
  return (
    <section id="figures" aria-labelledby="figures-title">
      <h2 id="figures-title">Figures that carry the story</h2>
      <div class="leads">
        {leads.map(({ question, claim, spec, better, wide }) => (
          <article key={claim.id} class={wide ? "wide" : ""}>
            <h3>{question}</h3>
            <p class="lead-claim"><Mark state={stateOf(claim)} word /> <a href={`#${claim.id}`}>{claim.id}</a></p>
            <Figure spec={spec} name={`lead.${claim.id}`} />
            {better !== claim.id && <p class="note">Until there is a result of <code>{better}</code>, this stands in its place: <Command text={`isomer study ${better} --full`} /></p>}
          </article>
        ))}
      </div>
    </section>
  );
}

const ROWS = 12; // of a table that is shown whole

function MeasuredTable({ here, kept }: { here: Result | undefined; kept: Result | undefined }) {
  const results = [here, kept].filter((r): r is Result => r !== undefined);
  const all = results.flatMap((r) => r.measured), names = [...new Set(all.filter((m) => !isRate(m)).map((m) => m.name))];
  const rates = [...new Set(all.filter(isRate).map((m) => m.name))];
  const published = new Map((results[0]?.published ?? []).map((p) => [p.name, p] as const));
  // What was published and has nothing of ours beside it is told below.
  for (const p of published.values()) if (p.value !== null && !names.includes(p.name) && results.some((r) => valueIn(r, p.name))) names.push(p.name);
  // Of many the rule's own are enough to begin with.
  const first = names.length > ROWS ? names.filter((name) => results.some((r) => r.rule.includes(name))) : names;
  const others = names.filter((name) => !first.includes(name));
  const table = (which: string[], label: string, beside = published) =>
    which.length > 0 && <Numbers results={results} kept={kept} names={which} published={beside} label={`${label} of ${results[0]!.id}`} />;
  return (
    <>
      {table(first, "measured values")}
      {others.length > 0 && <details class="folded"><summary>{first.length > 0 ? `${others.length} more` : plural(others.length, "quantity", "quantities")}</summary>{table(others, "more values")}</details>}
      {rates.length > 0 && <details class="folded"><summary>learning rates that were chosen ({rates.length})</summary>{table(rates, "learning rates", new Map())}</details>}
    </>
  );
}

/** A quantity, or what a figure with named columns has under "SERIES, NAME". */
function valueIn(result: Result, name: string) {
  const own = result.measured.find((one) => one.name === name);
  if (own) return own;
  for (const series of result.figure.series)
    for (const [x, value, low, high] of series.points)
      if (x !== null && value !== null && `${series.name}, ${result.figure.names?.[x]}` === name) return { value, low, high, unit: result.figure.y };
  return undefined;
}

/** A value with its unit, in the digits that its interval is worth. */
function Quantity({ of, unit }: { of: ReturnType<typeof valueIn>; unit: boolean }) {
  if (!of) return <>–</>;
  const [value, bounds] = measured(of.value, of.low, of.high);
  return <>{of.value === null ? value : <data value={of.value}>{value}</data>} {bounds && <span class="quiet bounds">{bounds}</span>} {unit && <span class="quiet">{typeset(of.unit)}</span>}</>;
}

function Numbers({ results, kept, names, published, label }: { results: Result[]; kept: Result | undefined; names: string[]; published: Map<string, Published>; label: string }) {
  const withPublished = names.some((name) => published.get(name)?.value != null);
  // What all have in common is said once.
  const units = new Set(names.flatMap((name) => results.flatMap((r) => valueIn(r, name)?.unit ?? []))), shared = units.size === 1 ? [...units][0]! : undefined;
  return (
    <div class="scroll" role="region" tabIndex={0} aria-label={label}>
      <table class="numbers measured">
        <thead>
          <tr>
            <th scope="col">quantity</th>
            {results.map((r) => <th key={r.mode + (r === kept)} scope="col">{[`${results.length > 1 ? (r === kept ? "kept" : "here") : "measured"} (${r.mode})`, shared && typeset(shared)].filter(Boolean).join(", ")}</th>)}
            {withPublished && <th scope="col">published</th>}
          </tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name} data-quantity={name}>
              <th scope="row">{name}</th>
              {results.map((r) => <td key={r.mode + (r === kept)}><Quantity of={valueIn(r, name)} unit={shared === undefined} /></td>)}
              {withPublished && <td><Value of={published.get(name)?.value} /></td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const where = (claim: Claim, result: Result): string | undefined =>
  claim.here && claim.kept ? (result === claim.here ? `here, ${result.mode}` : `kept, ${result.mode}`) : undefined;

/** Its lines end between words: a break within --full would read as another option. */
function Command({ text }: { text: string }) {
  return <code>{text.split(/( )/).map((word, i) => (word === " " ? word : <span key={i}>{word}</span>))}</code>;
}

function Foot({ result }: { result: Result }) {
  return (
    <p class="foot">
      <Command text={result.command} />
      <span>{[result.mode, result.cells > 0 && `${plural(result.cells, "run")}, ${plural(result.seeds, "seed")}`, duration(result.seconds), machineText(result.machine), `version ${result.version}`].filter(Boolean).join(" · ")}</span>
    </p>
  );
}

const MANY = 8;
/** Many values of one table are in the table above; here it is said once where they come from. */
function told(published: Published[]): Published[] {
  if (published.length <= MANY) return published;
  return [...new Set(published.map((p) => p.where))].map((where) => ({ name: plural(published.filter((p) => p.where === where).length, "value"), value: null, where }));
}

export function ClaimSection({ claim }: { claim: Claim }) {
  const results = [claim.here, claim.kept].filter((r): r is Result => r !== undefined);
  const figures = results.flatMap((result) => {
    const spec = specOf(result);
    return spec ? [{ result, spec }] : [];
  });
  const published = claim.best?.published ?? [];
  const differ = claim.here && claim.kept && claim.here.verdict !== claim.kept.verdict;
  return (
    <article id={claim.id} class="claim" aria-labelledby={`${claim.id}-title`}>
      <p class="claim-head"><Mark state={stateOf(claim)} word /><code>{claim.id}</code>{claim.trained && <span class="tag">trained</span>}</p>
      <h3 id={`${claim.id}-title`}><Prose text={claim.statement} /></h3>
      {differ && (
        <p class="differ">Here ({claim.here!.mode}): <Mark state={claim.here!.verdict} word />; kept ({claim.kept!.mode}): <Mark state={claim.kept!.verdict} word />.</p>
      )}
      <div class={figures.length > 1 ? "figures-row" : ""}>
        {figures.map(({ result, spec }) => (
          <Figure key={where(claim, result)} spec={spec} name={result === claim.kept && figures.length > 1 ? `${claim.id}.kept` : claim.id} title={where(claim, result)} />
        ))}
      </div>
      <MeasuredTable here={claim.here} kept={claim.kept} />
      <dl>
        {claim.quantity && <><dt>measured</dt><dd><Prose text={claim.quantity} /></dd></>}
        <dt>rule</dt><dd><Prose text={claim.rule} /></dd>
        {claim.best && <><dt>found</dt><dd><Prose text={foundOf(claim.best)} /></dd></>}
        {claim.best?.reason && <><dt>why</dt><dd><Prose text={claim.best.reason} /></dd></>}
        {published.length > 0 && (
          <><dt>published</dt><dd>{told(published).map((p) => <div key={p.name}><Prose text={p.name} />{p.value !== null && <> <b><Value of={p.value} /></b></>} <span class="quiet">(<Prose text={p.where} />)</span></div>)}</dd></>
        )}
      </dl>
      {results.length > 0 ? results.map((result) => <Foot key={result.mode + result.seconds} result={result} />) : <p class="foot"><Command text={`isomer study ${claim.id} --full`} /><span>not run yet</span></p>}
    </article>
  );
}
