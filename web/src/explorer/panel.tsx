// One of two sides: a mixer or the run, on the text of the page.
import { useEffect, useState } from "preact/hooks";
import type { ExploreData } from "../data.ts";
import { line, Sentence, SmallMap } from "../explore.tsx";
import { AttentionMap, MapTools, shade } from "../figure/map.tsx";
import { Figure } from "../figure/view.tsx";
import { num } from "../format.ts";
import { Value } from "../parts.tsx";
import { type HeadView, type Question, useAnswer, useLater, type View } from "./ask.ts";
import { Equations } from "./equations.tsx";
import { OptionControls } from "./options.tsx";
import { Pixels, weightText } from "./pixels.tsx";
import { StateView } from "./state.tsx";

const FEW = 40; // words that fit beside a map
const LATER = 120; // milliseconds

/** Tokens of a model may be spaces and ends of lines. */
const visible = (word: string): string => word.replaceAll(" ", "␣").replaceAll("\n", "⏎") || "∅";

const rowsOf = (view: HeadView): number[][] => view.matrix.map((row) => row.map((v) => v ?? 0));

function Map({ view, words, token, choose, name, side, streaming }: { view: HeadView; side: string; words: string[]; token: number; choose: (t: number) => void; name: string; streaming: boolean }) {
  const rows = streaming ? rowsOf(view).slice(0, token + 1) : rowsOf(view), T = words.length, label = `effective attention of ${name}: rows are outputs, columns inputs`;
  const tools = <MapTools words={words} rows={rows} label={label} name={`${side}.${name}.weights`} />;
  if (T <= FEW) {
    // Rows that are still to come keep their place.
    const all = [...rows, ...Array.from({ length: T - rows.length }, () => [] as number[])];
    return <><AttentionMap words={words} rows={all} token={token} choose={choose} label={label} />{tools}</>;
  }
  const fill = shade(rows);
  return (
    <>
      <div class="large-map">
        <Pixels rows={T} columns={T} colour={(t, s) => (rows[t]?.[s] === undefined ? null : fill(t, rows[t]![s]!))} label={label} mark={token} choose={choose}
          say={(t, s) => (rows[t]?.[s] === undefined ? "" : weightText(words, t, s, rows[t]![s]!))} />
      </div>
      {tools}
    </>
  );
}

/** All heads of a layer, small; one may be chosen. */
function Heads({ question, layers, layer, head, choose }: { question: Question; layers: View["layers"]; layer: number; head: number | null; choose: (head: number) => void }) {
  const { data } = useAnswer("maps", question);
  const heads = layers[layer]!.heads, several = new Set(heads.map((h) => h.law)).size > 1;
  return (
    <div class="heads" role="group" aria-label={layers.length > 1 ? `heads of layer ${layer}` : "heads"}>
      {heads.map((one, i) => (
        <button key={i} type="button" aria-pressed={i === head} onClick={() => choose(i)}>
          <SmallMap rows={data?.layer === layer && data.heads[i] ? rowsOf(data.heads[i]) : []} />
          {several ? `${one.law} ` : "head "}{one.head + 1}
        </button>
      ))}
    </div>
  );
}

/** The heads of every layer, asked for when somebody looks. */
function AllLayers({ question, view, choose }: { question: Question; view: View; choose: (layer: number, head: number) => void }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="layers" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>every head of all {view.layers.length} layers</summary>
      {open && view.layers.map((layer, i) => (
        <div key={i} class="layer-row">
          <span>{i} {layer.preset}</span>
          <Heads question={{ ...question, layer: i, head: 0 }} layers={view.layers} layer={i} head={i === view.layer ? view.head : null} choose={(head) => choose(i, head)} />
        </div>
      ))}
    </details>
  );
}

function Change({ question, words, side, name, choose }: { question: Question; words: string[]; side: string; name: string; choose: (t: number) => void }) {
  const [other, setOther] = useState("");
  const { data, error } = useAnswer("influence", other ? { ...question, other } : question);
  return (
    <section class="change" aria-label={`what changing a token does to ${name}`}>
      <h3>What changing one token does</h3>
      <p class="controls"><label>another word in its place <input type="text" size={12} value={other} placeholder={data?.other} onInput={(e) => setOther(e.currentTarget.value)} /></label></p>
      {error && <p class="problem">{error}</p>}
      {data && (
        <>
          <Sentence words={words} row={data.moved.map((v) => v ?? 0)} token={data.token} choose={choose} />
          <Figure name={`${side}.influence`} height={170} spec={{ kind: "lines", x: "token", y: "how far the output moves", caption: `“${data.word}” becomes “${data.other}”: outputs before it stay, later ones move, over their mean size.`, series: [line("moved", data.moved)] }} />
        </>
      )}
    </section>
  );
}

export interface Shared { data: ExploreData; text: string; token: number; choose: (t: number) => void; streaming: boolean; tell: (count: number) => void }

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
      {view && <Looks shared={shared} mixer={mixer} view={view} asked={answered!} side={side} />}
    </div>
  );
}

function Looks({ shared, mixer, view, asked, side }: { shared: Shared; mixer: ReturnType<typeof useMixer>; view: View; asked: Question; side: string }) {
  const words = view.words.map(visible), token = Math.min(shared.token, words.length - 1), head = view.view;
  useEffect(() => shared.tell(words.length), [words.length]);
  // The map comes first: the rest is asked for when it is there, and when nobody moves a slider.
  const { question, most } = useLater({ question: asked, most: words.length - 1 }, LATER), at = { ...question, token: Math.min(shared.token, most) };
  return (
    <>
      <h2 class="sr">{side}: {view.preset}</h2>
      <p class="summary">{view.summary} <span class="quiet">({view.source})</span></p>
      <Map view={head} words={words} token={token} choose={shared.choose} name={view.preset} side={side} streaming={shared.streaming} />
      <Sentence words={words} row={rowsOf(head)[token] ?? []} token={token} choose={shared.choose} />
      <p class="note horizon">
        State of {head.channels} × {head.features} numbers; memory horizon <Value of={head.horizon} digits={3} /> tokens
        {(head.unfinished ?? 0) > 0 && <>, and {num(100 * head.unfinished!, 2)} % are not forgotten at the end</>}.
        {head.averaged && " Channels have maps of their own: these are means of absolute values."}
      </p>
      {view.layers[view.layer]!.heads.length > 1 && <Heads question={question} layers={view.layers} layer={view.layer} head={view.head} choose={mixer.setHead} />}
      {view.layers.length > 1 && <AllLayers question={question} view={view} choose={(layer, head) => { mixer.setLayer(layer); mixer.setHead(head); }} />}
      {view.options.length > 0 && <section aria-label={`options of ${view.preset}`}><h3>Options</h3><OptionControls options={view.options} T={words.length} side={side} change={mixer.set} /></section>}
      <section aria-label={`equations of ${view.preset}`}><h3>Equations</h3><Equations lines={view.equations} question={at} head={view.layers[view.layer]!.heads[view.head]!.head} words={words} /></section>
      <StateView question={at} words={words} name={view.preset} side={side} />
      <Change question={at} words={words} side={side} name={view.preset} choose={shared.choose} />
    </>
  );
}
