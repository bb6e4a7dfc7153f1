// Mixers side by side as attention maps: linear, gated and delta models, too, by the Dynamical Systems view.
import { useState } from "preact/hooks";
import type { Head, MixerView, Num } from "./data.ts";
import { Pixels } from "./explorer/pixels.tsx";
import { AttentionMap, MapKey, MapTools, shade, withoutOwn } from "./figure/map.tsx";
import { planeSpec } from "./figure/plane.tsx";
import type { Series, Spec } from "./figure/spec.ts";
import { Figure } from "./figure/view.tsx";
import { grouped, num, plural } from "./format.ts";
import { Value } from "./parts.tsx";

type Look = "weights" | "influence";

/** Rows of what is looked at: weights of a head, or what changing a word does to every output. */
export function rowsOf(mixer: MixerView, head: Head, look: Look, own = true): number[][] {
  const T = mixer.words.length;
  // Of influence row t, column s: how far output t moves when word s is another one.
  const rows = look === "weights" ? head.matrix.map((row) => row.map((v) => v ?? 0)) : Array.from({ length: T }, (_, t) => Array.from({ length: t + 1 }, (_, s) => mixer.influence[s]?.[t] ?? 0));
  return own ? rows : withoutOwn(rows);
}

/** A curve over tokens, which are counted from 1. */
export const line = (label: string, values: Num[]): Series => ({ name: label, points: values.flatMap((y, x) => (y === null ? [] : [{ x: x + 1, y, low: y, high: y }])) });

const curves = (head: Head, name: string): Spec[] => {
  return [
    { kind: "lines", x: "token", y: "size of eigenvalues", caption: `How much of its state ${name} keeps from token to token.`, series: [line("largest", head.sizes.map((r) => r[1])), line("smallest", head.sizes.map((r) => r[0]))] },
    { kind: "lines", x: "token", y: "norm of the state", caption: `How full the state of ${name} is.`, series: [line("norm", head.norm)] },
    { kind: "lines", x: "token", y: "rank of the state", caption: `How many directions the state of ${name} has: the stable rank.`, series: [line("rank", head.rank)] },
  ];
};

export function Sentence({ words, row, token, choose }: { words: string[]; row: number[]; token: number; choose: (t: number) => void }) {
  const most = Math.max(...row.map(Math.abs), 1e-12);
  return (
    <p class="sentence">
      {words.map((word, s) => (
        <button key={s} type="button" aria-pressed={s === token} onClick={() => choose(s)} style={{ "--weight": `${Math.round((40 * Math.abs(row[s] ?? 0)) / most)}%` }}>
          {word}<span class="sr">, weight {num(row[s] ?? 0, 2)}</span>
        </button>
      ))}
    </p>
  );
}

/** How much a head keeps, and for how long. */
export function Horizon({ head }: { head: Pick<Head, "causal" | "channels" | "features" | "horizon" | "unfinished"> }) {
  if (!head.causal) return <>It sees the whole sequence at once, later tokens, too: no state is carried from token to token.</>;
  return (
    <>
      State of {grouped(head.channels)} × {grouped(head.features)} numbers. Memory horizon: a token keeps 1 % of its influence for <b><Value of={head.horizon} digits={3} /></b> {head.horizon === 1 ? "token" : "tokens"}
      {(head.unfinished ?? 0) > 0 && <> or more: {head.unfinished === 1 ? "all" : `${num(100 * head.unfinished!, 2)} % of tokens`} still count at the end</>}.
    </>
  );
}

/** The map of a head, small. */
export function SmallMap({ rows }: { rows: number[][] }) {
  const fill = shade(rows), T = Math.max(rows.length, 1);
  return <Pixels rows={T} columns={T} colour={(t, s) => (rows[t]?.[s] === undefined ? null : fill(t, rows[t]![s]!))} height={56} />;
}

/** Every mixer at one look; the one that is chosen goes to the right. */
function Gallery({ mixers, name, own, setName }: { mixers: MixerView[]; name: string; own: boolean; setName: (name: string) => void }) {
  const laws = [...new Set(mixers.map((m) => m.law))];
  return (
    <details class="gallery"><summary>all {mixers.length} mixers at one look</summary>
      {laws.map((law) => (
        <div key={law} class="heads" role="group" aria-label={`mixers of ${law}`}>
          {mixers.filter((m) => m.law === law).map((m) => (
            <button key={m.preset} type="button" aria-pressed={m.preset === name} onClick={() => setName(m.preset)}><SmallMap rows={rowsOf(m, m.heads[0]!, "weights", own)} />{m.preset}</button>
          ))}
        </div>
      ))}
      <p class="note">The first head of each, by law; a click shows it on the right.</p>
    </details>
  );
}

interface PanelOptions { mixers: MixerView[]; name: string; setName: (name: string) => void; label: string; look: Look; own: boolean; token: number; choose: (t: number) => void }

function Panel({ mixers, name, setName, label, look, own, token, choose }: PanelOptions) {
  const [at, setAt] = useState(0);
  const mixer = mixers.find((m) => m.preset === name) ?? mixers[0]!;
  const head = mixer.heads[Math.min(at, mixer.heads.length - 1)]!;
  const rows = rowsOf(mixer, head, look, own);
  const laws = [...new Set(mixers.map((m) => m.law))];
  const picture = `${look === "weights" ? "effective attention" : "influence"} of ${mixer.preset}: rows are outputs, columns inputs`;
  return (
    <div class="panel" data-preset={mixer.preset}>
      <div class="controls part-0">
        <label>{label} <select value={mixer.preset} onChange={(e) => setName(e.currentTarget.value)}>
          {laws.map((law) => <optgroup key={law} label={law}>{mixers.filter((m) => m.law === law).map((m) => <option key={m.preset} value={m.preset}>{m.preset}</option>)}</optgroup>)}
        </select></label>
        {mixer.heads.length > 1 && look === "weights" && (
          <label>head <select value={at} onChange={(e) => setAt(Number(e.currentTarget.value))}>
            {mixer.heads.map((h, i) => <option key={i} value={i}>{mixer.heads.some((o) => o.law !== h.law) ? `${h.law} ` : ""}{h.head + 1}</option>)}
          </select></label>
        )}
      </div>
      <div class="part-1">
        <p class="summary">{mixer.summary} <span class="quiet">({mixer.source})</span></p>
        <AttentionMap words={mixer.words} rows={rows} token={token} choose={choose} label={picture} />
        <MapTools words={mixer.words} rows={rows} label={picture} name={`${label}.${mixer.preset}.${look}`} />
        <Sentence words={mixer.words} row={rows[token] ?? []} token={token} choose={choose} />
        <p class="note">
          <Horizon head={head} />
          {head.averaged && look === "weights" && " Channels have maps of their own: these are means of absolute values."}
        </p>
      </div>
      <div class="part-2">{head.eigenvalues && <Figure spec={planeSpec(head.eigenvalues, `of ${mixer.preset} at the last word`)} name={`${label}.${mixer.preset}.eigenvalues`} />}</div>
      {curves(head, mixer.preset).map((spec, i) => <div key={spec.y} class={`part-${3 + i}`}><Figure spec={spec} name={`${label}.${mixer.preset}.${spec.y.split(" ")[0]}`} height={190} /></div>)}
      <details class="part-6"><summary>equations and options</summary>
        <pre>{mixer.equations.join("\n")}</pre>
        <dl class="options">{mixer.options.map((o) => <><dt key={o.name}>{o.name} = {o.value}</dt><dd>{o.help}</dd></>)}</dl>
      </details>
    </div>
  );
}

export function Explore({ mixers }: { mixers: MixerView[] }) {
  const words = mixers[0]!.words;
  const [token, choose] = useState(words.length - 1);
  const [look, setLook] = useState<Look>("weights");
  const [own, setOwn] = useState(true);
  const has = (name: string, fallback: number) => (mixers.some((m) => m.preset === name) ? name : mixers[fallback % mixers.length]!.preset);
  const [left, setLeft] = useState(has("softmax", 0));
  const [right, setRight] = useState(has("gla", 1));
  return (
    <section id="explore" aria-labelledby="explore-title">
      <h2 id="explore-title">Any mixer as an attention map</h2>
      <p>
        Every mixer here is h = Λh + Bu, y = Ch + Du, so each has a matrix that says how much of every earlier token is in an output: linear, gated and delta models beside softmax.
        These are untrained layers of width 128 on {plural(words.length, "word")}. A word is a random vector, the same for all; queries and keys start near it, so that like words attend to each other, and what a mixer keeps of them shows. Each row is shaded by its largest weight.
      </p>
      <div class="filters" role="group" aria-label="what is shown">
        <button type="button" aria-pressed={look === "weights"} onClick={() => setLook("weights")}>effective attention</button>
        <button type="button" aria-pressed={look === "influence"} onClick={() => setLook("influence")}>what changing a word does</button>
      </div>
      <MapKey own={own} setOwn={setOwn} />
      <Gallery mixers={mixers} name={right} own={own} setName={setRight} />
      <div class="panels">
        <Panel mixers={mixers} name={left} setName={setLeft} label="left" look={look} own={own} token={token} choose={choose} />
        <Panel mixers={mixers} name={right} setName={setRight} label="right" look={look} own={own} token={token} choose={choose} />
      </div>
    </section>
  );
}
