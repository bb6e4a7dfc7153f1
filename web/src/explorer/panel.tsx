// One of two sides: a mixer or the run, on the text of the page.
import { useEffect, useState } from "preact/hooks";
import type { ExploreData, MixerOption } from "../data.ts";
import { Horizon, line, Sentence, SmallMap } from "../explore.tsx";
import { AttentionMap, MapTools, shade, withoutOwn } from "../figure/map.tsx";
import { Figure } from "../figure/view.tsx";
import { type HeadView, type Question, useAnswer, useLater, type View } from "./ask.ts";
import { Equations } from "./equations.tsx";
import { OptionControls } from "./options.tsx";
import { Pixels, weightText } from "./pixels.tsx";
import { StateView } from "./state.tsx";

/** Words that can be read beside a map. */
const few = (): number => (window.innerWidth < 640 ? 20 : 40);
const LATER = 120; // milliseconds

/** Tokens of a model may be spaces and ends of lines. */
const visible = (word: string): string => word.replaceAll(" ", "␣").replaceAll("\n", "⏎") || "∅";
/** A space at the end of every one, as of numbers, says nothing. */
function visibleWords(words: string[]): string[] {
  const ended = words.every((word) => word.length > 1 && word.endsWith(" "));
  return words.map((word) => visible(ended ? word.slice(0, -1) : word));
}

function rowsOf(view: HeadView, own: boolean): number[][] {
  const rows = view.matrix.map((row) => row.map((v) => v ?? 0));
  return own ? rows : withoutOwn(rows);
}

function Map({ view, words, token, choose, name, side, streaming, own }: { view: HeadView; side: string; words: string[]; token: number; choose: (t: number) => void; name: string; streaming: boolean; own: boolean }) {
  const whole = rowsOf(view, own), rows = streaming && view.causal ? whole.slice(0, token + 1) : whole, T = words.length, label = `effective attention of ${name}: rows are outputs, columns inputs`;
  const tools = <MapTools words={words} rows={rows} label={label} name={`${side}.${name}.weights`} />;
  if (T <= few()) {
    // Rows that are still to come keep their place.
    const all = [...rows, ...Array.from({ length: T - rows.length }, () => [] as number[])];
    return <><AttentionMap words={words} rows={all} token={token} choose={choose} label={label} />{tools}</>;
  }
  const fill = shade(rows);
  return (
    <>
      <div class="large-map">
        <Pixels rows={T} columns={T} colour={(t, s) => (rows[t]?.[s] === undefined ? null : fill(t, rows[t]![s]!))} label={label} mark={token} marked={rows[token]?.length} choose={choose}
          say={(t, s) => (rows[t]?.[s] === undefined ? "" : weightText(words, t, s, rows[t]![s]!))} />
      </div>
      {tools}
    </>
  );
}

/** All heads of a layer, small; one may be chosen. */
function Heads({ question, layers, layer, head, own, choose }: { question: Question; own: boolean; layers: View["layers"]; layer: number; head: number | null; choose: (head: number) => void }) {
  const { data } = useAnswer("maps", question);
  const heads = layers[layer]!.heads, several = new Set(heads.map((h) => h.law)).size > 1;
  return (
    <div class="heads" role="group" aria-label={layers.length > 1 ? `heads of layer ${layer}` : "heads"}>
      {heads.map((one, i) => (
        <button key={i} type="button" aria-pressed={i === head} onClick={() => choose(i)}>
          <SmallMap rows={data?.layer === layer && data.heads[i] ? rowsOf(data.heads[i], own) : []} />
          {several ? `${one.law} ` : "head "}{one.head + 1}
        </button>
      ))}
    </div>
  );
}

/** The heads of every layer, asked for when somebody looks. */
function AllLayers({ question, view, own, choose }: { question: Question; view: View; own: boolean; choose: (layer: number, head: number) => void }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="layers" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>every head of all {view.layers.length} layers</summary>
      {open && view.layers.map((layer, i) => (
        <div key={i} class="layer-row">
          <span>{i} {layer.preset}</span>
          <Heads question={{ ...question, layer: i, head: 0 }} own={own} layers={view.layers} layer={i} head={i === view.layer ? view.head : null} choose={(head) => choose(i, head)} />
        </div>
      ))}
    </details>
  );
}

function Change({ question, words, side, view, choose }: { question: Question; words: string[]; side: string; view: View; choose: (t: number) => void }) {
  const [other, setOther] = useState("");
  const { data, error } = useAnswer("influence", other ? { ...question, other } : question);
  return (
    <section class="change part-5" aria-label={`what changing a token does to ${view.preset}`}>
      <h3>What changing one token does</h3>
      <p class="controls"><label>another word in its place <input type="text" size={12} value={other} placeholder={data?.other} onInput={(e) => setOther(e.currentTarget.value)} /></label></p>
      {error && <p class="problem">{error}</p>}
      {data && (
        <>
          <Sentence words={words} row={data.moved.map((v) => v ?? 0)} token={data.token} choose={choose} />
          <Figure name={`${side}.influence`} height={170} spec={{ kind: "lines", x: "token", y: "how far the output moves", caption: `“${visible(data.word.trim() || data.word)}” becomes “${visible(data.other.trim() || data.other)}”: ${view.view.causal ? "outputs before it stay, later ones move" : "outputs before and behind it move"}, over their mean size.`, series: [line("moved", data.moved)] }} />
        </>
      )}
    </section>
  );
}

export interface Shared { data: ExploreData; text: string; own: boolean; token: number; choose: (t: number) => void; streaming: boolean; tell: (count: number) => void }

const RUN = "(run)";

function useMixer(shared: Shared, start: string | null) {
  const [name, setName] = useState(start ?? RUN);
  const [settings, setSettings] = useState<Record<string, string>>({});
  const [layer, setLayer] = useState(0);
  const [head, setHead] = useState(0);
  const set = (option: string, value: string | null) =>
    setSettings(({ [option]: _, ...others }) => (value === null ? others : { ...others, [option]: value }));
  const choose = (next: string) => {
    setName(next);
    setSettings({});
    setLayer(0);
    setHead(0);
  };
  const subject = { ...(name === RUN ? {} : { preset: name, settings }), text: shared.text };
  return { name, choose, set, settings, setLayer, setHead, subject, question: { ...subject, layer, head } };
}

export function Panel({ shared, start, side }: { shared: Shared; start: string | null; side: "left" | "right" }) {
  const mixer = useMixer(shared, start), { data: view, error, asked, answered, ms } = useAnswer("view", mixer.question);
  // An option that another one has made pointless goes; a head that is no longer there is not the one that was chosen.
  const pointless = error && /option (\w+) has no effect/.exec(error)?.[1];
  if (pointless && mixer.settings[pointless] !== undefined) mixer.set(pointless, null);
  if (error?.startsWith("head: ") && mixer.question.head > 0) mixer.setHead(0);
  const laws = [...new Set(shared.data.presets.map((p) => p.law))];
  const settled = asked === JSON.stringify(mixer.question);
  return (
    <div class="panel" data-side={side} data-preset={view?.preset} data-settled={settled} data-ms={ms}>
      <div class="part-0">
        <div class="controls">
          <label>{side} <select value={mixer.name} onChange={(e) => mixer.choose(e.currentTarget.value)}>
            {shared.data.run && <option value={RUN}>{shared.data.run}</option>}
            {laws.map((law) => <optgroup key={law} label={law}>{shared.data.presets.filter((p) => p.law === law).map((p) => <option key={p.preset} value={p.preset}>{p.preset}</option>)}</optgroup>)}
          </select></label>
          {view && view.layers.length > 1 && (
            <label>layer <select value={view.layer} onChange={(e) => { mixer.setLayer(Number(e.currentTarget.value)); mixer.setHead(0); }}>
              {view.layers.map((l, i) => <option key={i} value={i}>{i} {l.preset}</option>)}
            </select></label>
          )}
        </div>
        {error && <p class="problem" role="alert">{error}</p>}
      </div>
      {view && <Looks shared={shared} mixer={mixer} view={view} asked={answered!} side={side} />}
    </div>
  );
}

function Looks({ shared, mixer, view, asked, side }: { shared: Shared; mixer: ReturnType<typeof useMixer>; view: View; asked: Question; side: string }) {
  const words = visibleWords(view.words), token = Math.min(shared.token, words.length - 1), head = view.view;
  useEffect(() => shared.tell(words.length), [words.length]);
  const changed = Object.entries(view.changed);
  // A control shows what was chosen, also before the answer to it is there.
  const wanted = (o: MixerOption) => mixer.settings[o.name] ?? (asked.settings?.[o.name] === undefined ? o.value : o.default);
  // The map comes first: the rest is asked for when it is there, and when nobody moves a slider.
  const { question, most } = useLater({ question: asked, most: words.length - 1 }, LATER), at = { ...question, token: Math.min(shared.token, most) };
  return (
    <>
      <div class="part-1">
        <h2 class="sr">{side}: {view.preset}</h2>
        <p class="summary">
          {view.preset}: {view.summary} <span class="quiet">({view.source})</span>
          {view.options.length === 0 && changed.length > 0 && <>, with {changed.map(([name, value]) => `${name} = ${value}`).join(", ")}</>}
        </p>
        <Map view={head} words={words} token={token} choose={shared.choose} name={view.preset} side={side} streaming={shared.streaming} own={shared.own} />
        <Sentence words={words} row={rowsOf(head, shared.own)[token] ?? []} token={token} choose={shared.choose} />
        <p class="note horizon">
          <Horizon head={head} />
          {head.averaged && " Channels have maps of their own: these are means of absolute values."}
        </p>
        {view.layers[view.layer]!.heads.length > 1 && <Heads question={question} own={shared.own} layers={view.layers} layer={view.layer} head={view.head} choose={mixer.setHead} />}
        {view.layers.length > 1 && <AllLayers question={question} view={view} own={shared.own} choose={(layer, head) => { mixer.setLayer(layer); mixer.setHead(head); }} />}
      </div>
      {view.options.length > 0 && <section class="part-2" aria-label={`options of ${view.preset}`}><h3>Options</h3><OptionControls options={view.options.map((o) => ({ ...o, value: wanted(o) }))} T={words.length} side={side} change={mixer.set} /></section>}
      <section class="part-3" aria-label={`equations of ${view.preset}`}><h3>Equations</h3><Equations lines={view.equations} question={at} head={view.layers[view.layer]!.heads[view.head]!.head} words={words} /></section>
      {head.causal ? <StateView question={at} words={words} name={view.preset} side={side} /> : <section class="part-4" aria-label={`no state of ${view.preset}`}><h3>The state</h3><p class="note">There is none: every output is computed from the whole sequence.</p></section>}
      <Change question={at} words={words} side={side} view={view} choose={shared.choose} />
    </>
  );
}
