// The options of a preset as controls: what each may be comes from the program.
import type { MixerOption } from "../data.ts";
import { plural } from "../format.ts";

/** What changes the map most stands first; the others wait behind a line. */
const FIRST = ["order", "window", "sinks", "kernel", "normaliser", "decay", "gate_power", "gate", "negative", "r_min", "r_max", "max_phase", "input_bias", "phi", "feature", "features", "form", "temperature", "position", "rope_base", "phase_max", "phase_filter", "causal", "heads"];

export interface Range { least: number; most: number; step: number }

/** Where a slider goes: far enough on both sides of what it is. */
export function rangeOf(option: MixerOption, T: number): Range {
  const usual = Number(option.default), now = Number(option.value);
  if (option.kind === "size") {
    const most = option.name === "window" || option.name === "sinks" ? T : option.name === "order" ? 8 : Math.max(4 * usual, 8);
    return { least: option.least, most: Math.max(most, now), step: 1 };
  }
  const reach = 4 * Math.abs(usual) || 4;
  return { least: Math.min(usual < 0 ? -reach : 0, now), most: Math.max(usual < 0 ? 0 : reach, now), step: reach / 400 };
}

function Control({ option, T, id, set }: { option: MixerOption; T: number; id: string; set: (value: string) => void }) {
  const input = (e: { currentTarget: { value: string } }) => set(e.currentTarget.value);
  if (option.kind === "flag") return <input id={id} type="checkbox" checked={option.value === "true"} onChange={(e) => set(String(e.currentTarget.checked))} />;
  if (option.kind === "choice")
    return <select id={id} value={option.value} onChange={input}>{option.choices.map((choice) => <option key={choice} value={choice}>{choice}</option>)}</select>;
  if (option.kind === "limit") return <input id={id} type="text" size={6} value={option.value} onChange={input} />;
  const { least, most, step } = rangeOf(option, T);
  const tell = option.kind === "size" ? option.value : String(Number(Number(option.value).toPrecision(4)));
  return (
    <>
      <input id={id} type="range" min={least} max={most} step={step} value={option.value} onInput={input} />
      <output for={id}>{tell}</output>
    </>
  );
}

export function OptionControls({ options, T, side, change }: { options: MixerOption[]; T: number; side: string; change: (name: string, value: string | null) => void }) {
  const place = (option: MixerOption) => FIRST.indexOf(option.name);
  const first = options.filter((o) => place(o) >= 0).sort((a, b) => place(a) - place(b)), others = options.filter((o) => place(o) < 0);
  const rows = (all: MixerOption[]) => (
    <div class="option-rows">
      {all.map((option) => {
        const id = `${side}-${option.name}`;
        return (
          <div key={option.name} class={option.value === option.default ? "option" : "option changed"} data-option={option.name}>
            <label for={id} title={option.help}>{option.name}</label>
            <Control option={option} T={T} id={id} set={(value) => change(option.name, value === option.default ? null : value)} />
            {option.value !== option.default && <button type="button" class="undo" onClick={() => change(option.name, null)} aria-label={`${option.name} as it was: ${option.default}`}>↺</button>}
            {option.help !== option.name && <p class="help">{option.help}</p>}
          </div>
        );
      })}
    </div>
  );
  return (
    <div class="option-list">
      {rows(first)}
      {others.length > 0 && <details><summary>{plural(others.length, "more option")}</summary>{rows(others)}</details>}
    </div>
  );
}
