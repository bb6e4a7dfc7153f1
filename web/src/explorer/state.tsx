// The state of a head: what a token leaves of it and writes to it, its eigenvalues, and how it goes over time.
import { line } from "../explore.tsx";
import { planeSpec } from "../figure/plane.tsx";
import type { Spec } from "../figure/spec.ts";
import { diverging, sequential } from "../figure/theme.ts";
import { Figure } from "../figure/view.tsx";
import { Value } from "../parts.tsx";
import { type Curves, type Question, type State, useAnswer } from "./ask.ts";
import { Pixels } from "./pixels.tsx";

type Grid = number[][];

/** One channel a row would be a thin line: single numbers are laid out in a block. */
function laidOut(rows: Grid): Grid {
  if (rows[0]!.length > 1) return rows[0]!.length > rows.length ? rows : rows[0]!.map((_, f) => rows.map((row) => row[f]!));
  const all = rows.flat(), wide = Math.ceil(Math.sqrt(4 * all.length));
  return Array.from({ length: Math.ceil(all.length / wide) }, (_, r) => all.slice(r * wide, (r + 1) * wide));
}

const numbers = (rows: (number | null)[][]): Grid => rows.map((row) => row.map((v) => v ?? 0));

function Part({ name, rows, most, complex, note }: { name: string; rows: Grid; most: number; complex: boolean; note: string }) {
  const grid = laidOut(rows), columns = Math.max(...grid.map((row) => row.length));
  const colour = (r: number, c: number) => (grid[r]![c] === undefined ? null : complex ? sequential(grid[r]![c]! / most) : diverging(0.5 + grid[r]![c]! / most / 2));
  return (
    <div class="state-part">
      <p><b>{name}</b> {note}</p>
      <Pixels rows={grid.length} columns={columns} colour={colour} label={`${name} of the state, ${rows.length} by ${rows[0]!.length} numbers`} height={Math.min(150, Math.max(56, grid.length * 5))} />
    </div>
  );
}

function curveSpecs(curves: Curves, name: string): Spec[] {
  const specs: Spec[] = [
    { kind: "lines", x: "token", y: "norm of the state", caption: `How full the state of ${name} is, and how much each token writes.`, series: [line("state", curves.norm), line("written", curves.written)] },
    { kind: "lines", x: "token", y: "share that is kept", caption: `What each token leaves of the state that it finds: below 1 it forgets.`, series: [line("kept", curves.kept.map((v, t) => (t === 0 ? null : v)))] },
    { kind: "lines", x: "token", y: "rank of the state", caption: "How many directions the state has: the stable rank.", series: [line("rank", curves.rank)] },
  ];
  if (curves.sizes)
    specs.push({ kind: "lines", x: "token", y: "size of eigenvalues", caption: "How much of the state its fastest and slowest directions keep.", series: [line("largest", curves.sizes.map((r) => r[1])), line("smallest", curves.sizes.map((r) => r[0]))] });
  if (curves.angles?.some(([low, high]) => Math.abs(low ?? 0) > 1e-9 || Math.abs(high ?? 0) > 1e-9))
    specs.push({ kind: "lines", x: "token", y: "angle of eigenvalues", caption: "How far the state turns at each token, in radians.", series: [line("largest", curves.angles.map((r) => r[1])), line("smallest", curves.angles.map((r) => r[0]))] });
  // One token alone has nothing before it to keep.
  return specs.filter((spec) => spec.series.some((series) => series.points.length > 0));
}

function Moment({ state, curves, word }: { state: State; curves?: Curves; word: string }) {
  const kept = numbers(state.kept), written = numbers(state.written);
  const after = kept.map((row, c) => row.map((v, f) => v + written[c]![f]!));
  const most = Math.max(...kept.flat().map(Math.abs), ...written.flat().map(Math.abs), ...after.flat().map(Math.abs), 1e-300);
  const t = state.token;
  return (
    <>
      <p class="moment" data-token={t}>
        “{word}” keeps <Value of={t === 0 ? null : curves?.kept[t]} digits={3} /> of the state before it, writes <Value of={curves?.written[t]} digits={3} /> and leaves a norm of <Value of={curves?.norm[t]} digits={3} />.
      </p>
      <div class="state-parts">
        <Part name="kept" note="of before" rows={kept} most={most} complex={state.complex} />
        <Part name="written" note="by the token" rows={written} most={most} complex={state.complex} />
        {!state.complex && <Part name="state" note="is their sum" rows={after} most={most} complex={false} />}
      </div>
      {curves?.kept.some((share) => (share ?? 0) > 1.001) && <p class="note">What divides the output (softmax: the sum of its weights) is written as a part of this state: each token scales all of it anew, and may make it larger than it was.</p>}
      {state.complex && <p class="note">Its numbers are complex: sizes are shown.</p>}
    </>
  );
}

export function StateView({ question, words, name, side }: { question: Question; words: string[]; name: string; side: string }) {
  const { token, ...head } = question;
  const curves = useAnswer("curves", head), state = useAnswer("state", question);
  const problem = curves.error ?? state.error;
  return (
    <section class="state part-4" aria-label={`state of ${name}`}>
      <h3>The state</h3>
      {problem && <p class="problem">{problem}</p>}
      {state.data && <Moment state={state.data} curves={curves.data} word={words[state.data.token] ?? ""} />}
      {curves.data && (
        <div class="small-figures">
          {curveSpecs(curves.data, name).map((spec) => <Figure key={spec.y} spec={spec} name={`${side}.${spec.y.replaceAll(" ", "-")}`} height={170} />)}
          {state.data?.eigenvalues && <Figure spec={planeSpec(state.data.eigenvalues, `at “${words[state.data.token] ?? ""}”`)} name={`${side}.eigenvalues`} />}
        </div>
      )}
    </section>
  );
}
