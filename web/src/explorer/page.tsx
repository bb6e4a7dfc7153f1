// The page of `isomer explore`: a text, and two sides that read it.
import { useEffect, useState } from "preact/hooks";
import type { ExploreData } from "../data.ts";
import { MapKey } from "../figure/map.tsx";
import { ThemeButton } from "../parts.tsx";
import { Panel } from "./panel.tsx";

const PAUSE = 450; // milliseconds a token, when they are streamed

/** Texts that show something; for mixers, which read any words. */
const EXAMPLES: [string, () => string][] = [
  ["a sentence", () => "the cat sat on the mat and the dog sat by the cat"],
  ["recall", () => "a 1 b 2 c 3 d 4 e 5 c 3 a 1 e 5 b 2"],
  ["128 words", () => Array.from({ length: 128 }, (_, i) => `w${(i * i + 3 * i) % 23}`).join(" ")],
];

export function Explorer({ data }: { data: ExploreData }) {
  const [text, setText] = useState(data.text);
  // Only the program knows the tokens of a model's text: panels tell how many there are.
  const [count, setCount] = useState(1);
  const [token, choose] = useState<number | null>(null); // null: one in the middle, with tokens before and behind it
  const [streaming, setStreaming] = useState(false);
  const [own, setOwn] = useState(true);
  const last = count - 1, shown = Math.min(token ?? count >> 1, last);
  useEffect(() => {
    if (!streaming) return;
    const timer = setTimeout(() => (shown >= last ? setStreaming(false) : choose(shown + 1)), PAUSE);
    return () => clearTimeout(timer);
  }, [streaming, shown, last]);
  const stream = () => {
    if (streaming) return setStreaming(false);
    choose(0);
    setStreaming(true);
  };
  const shared = { data, text, own, token: shown, choose: (t: number) => { setStreaming(false); choose(t); }, streaming, tell: setCount };
  return (
    <main class="page-explore">
      <header class="masthead">
        <p class="eyebrow"><span>Isomer {data.version} · explorer</span><ThemeButton /></p>
        <h1>Any mixer as an attention map</h1>
        <p class="lede">
          Every mixer here is h = Λh + Bu, y = Ch + Du, so each has a matrix that says how much of every earlier token is in an output: linear, gated and delta models beside softmax.
        </p>
        <p class="note">
          Presets are layers of width 128 as they start. A word is a random vector, the same for all; queries and keys start near it, so that like words attend to each other. Each row is shaded by its largest weight.
          {data.run && ` ${data.run} is shown with its own weights, on its own tokens.`}
        </p>
        <div class="reading">
          <label>text<textarea rows={2} value={text} spellcheck={false} onInput={(e) => { setStreaming(false); setText(e.currentTarget.value); }} /></label>
          <div class="filters" role="group" aria-label="texts and streaming">
            <button type="button" class="stream" aria-pressed={streaming} onClick={stream}>{streaming ? "■ stop" : "▶ stream it"}</button>
            <label class="token">token <input type="range" min={1} max={count} value={shown + 1} onInput={(e) => shared.choose(Number(e.currentTarget.value) - 1)} /> <output>{shown + 1} of {count}</output></label>
            {!data.run && EXAMPLES.map(([name, make]) => <button key={name} type="button" onClick={() => { setStreaming(false); choose(null); setText(make()); }}>{name}</button>)}
          </div>
        </div>
      </header>
      <MapKey own={own} setOwn={setOwn} />
      <div class="panels">
        <Panel shared={shared} start={data.left} side="left" />
        <Panel shared={shared} start={data.right} side="right" />
      </div>
    </main>
  );
}
