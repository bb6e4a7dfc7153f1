// The page of training runs: their curves beside each other.
import { useMemo, useState } from "preact/hooks";
import type { Num, Run, RunsData } from "./data.ts";
import { Figure } from "./figure/view.tsx";
import type { Point, Series, Spec } from "./figure/spec.ts";
import { colour } from "./figure/theme.ts";
import { duration, grouped, plural } from "./format.ts";
import { Problems, ThemeButton, Value } from "./parts.tsx";

type Clock = "step" | "seconds";
interface Settings { clock: Clock; smoothing: number; logLoss: boolean }

/** An exponential mean that starts without a bias; gaps stay gaps. */
export function smooth(values: Num[], weight: number): Num[] {
  let mean = 0, scale = 0;
  return values.map((v) => {
    if (v === null) return null;
    mean = weight * mean + (1 - weight) * v;
    scale = weight * scale + (1 - weight);
    return mean / scale;
  });
}

function curve(name: string, xs: Num[], ys: Num[], smoothing: number): Series[] {
  const points: Point[] = [];
  const shown = smoothing > 0 ? smooth(ys, smoothing) : ys;
  xs.forEach((x, i) => {
    const y = shown[i] ?? null;
    if (x !== null && y !== null) points.push({ x, y, low: y, high: y });
  });
  return points.length > 0 ? [{ name, points }] : [];
}

interface Chart { id: string; title: string; y: string; caption: string; log?: boolean; series: (settings: Settings) => Series[] }

function chartsOf(runs: { name: string; run: Run }[]): Chart[] {
  const train = (key: "loss" | "lr" | "grad_norm" | "tokens_per_s", smoothed: boolean) => ({ clock, smoothing }: Settings) =>
    runs.flatMap(({ name, run }) => curve(name, run.train[clock], run.train[key], smoothed ? smoothing : 0));
  const evaluated = (key: "loss" | "value", of: (run: Run) => boolean) => ({ clock }: Settings) =>
    runs.filter(({ run }) => of(run)).flatMap(({ name, run }) => curve(name, run.eval[clock], run.eval[key], 0));
  const metrics = [...new Set(runs.flatMap(({ run }) => (run.metric ? [run.metric] : [])))];
  return [
    { id: "loss", title: "Training loss", y: "loss", caption: "Loss on the batches of training.", log: true, series: train("loss", true) },
    { id: "eval-loss", title: "Evaluation loss", y: "loss", caption: "Loss on examples that are not trained on.", log: true, series: evaluated("loss", () => true) },
    ...metrics.map((metric) => ({ id: metric.replaceAll(" ", "-"), title: metric.charAt(0).toUpperCase() + metric.slice(1), y: metric, caption: `The task's metric (${metric}) on examples that are not trained on.`, series: evaluated("value", (run) => run.metric === metric) })),
    { id: "grad-norm", title: "Gradient norm", y: "norm", caption: "Norm of the gradient before clipping.", log: true, series: train("grad_norm", true) },
    { id: "lr", title: "Learning rate", y: "rate", caption: "The schedule as it was.", series: train("lr", false) },
    { id: "tokens-per-s", title: "Tokens per second", y: "tokens/s", caption: "How fast it went.", series: train("tokens_per_s", true) },
  ];
}

function Controls({ settings, set }: { settings: Settings; set: (s: Settings) => void }) {
  return (
    <form class="controls" onSubmit={(event) => event.preventDefault()}>
      <label>smoothing <input type="range" min="0" max="0.98" step="0.02" value={settings.smoothing} onInput={(e) => set({ ...settings, smoothing: Number(e.currentTarget.value) })} /> <output>{settings.smoothing.toFixed(2)}</output></label>
      <label>along <select value={settings.clock} onChange={(e) => set({ ...settings, clock: e.currentTarget.value as Clock })}><option value="step">steps</option><option value="seconds">seconds</option></select></label>
      <label><input type="checkbox" checked={settings.logLoss} onChange={(e) => set({ ...settings, logLoss: e.currentTarget.checked })} /> logarithmic losses and norms</label>
    </form>
  );
}

function Table({ runs, hidden, toggle }: { runs: { name: string; run: Run }[]; hidden: Set<string>; toggle: (name: string) => void }) {
  return (
    <div class="scroll" role="region" tabIndex={0} aria-label="runs">
      <table class="numbers runs">
        <thead><tr>{["run", "task", "layers", "state", "step", "loss", "metric", "tokens/s", "parameters", "time"].map((head) => <th key={head} scope="col">{head}</th>)}</tr></thead>
        <tbody>
          {runs.map(({ name, run }, i) => (
            <tr key={name} data-run={name}>
              <th scope="row"><label><input type="checkbox" checked={!hidden.has(name)} onChange={() => toggle(name)} /><i style={{ background: colour(i) }} /> {name}</label></th>
              <td>{run.task}</td><td class="wrap">{run.layers?.replaceAll(",", ", ")}</td>
              <td>{run.state}{run.problem && <span class="quiet"> {run.problem}</span>}</td>
              <td>{run.step ?? 0}{run.steps !== undefined && <span class="quiet"> of {run.steps}</span>}</td>
              <td><Value of={run.loss} /></td>
              <td>{run.metric && <>{run.metric} <b><Value of={run.value} /></b></>}</td>
              <td>{run.tokens_per_s ? grouped(run.tokens_per_s) : "–"}</td>
              <td>{run.parameters === undefined ? "–" : grouped(run.parameters)}</td>
              <td>{run.seconds === undefined ? "–" : duration(run.seconds)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The part of the paths that tells runs apart. */
export function shortNames(paths: string[]): string[] {
  const parts = paths.map((path) => path.replace(/\/+$/, "").split("/"));
  let shared = 0;
  while (parts.length > 1 && parts.every((p) => p.length > shared + 1 && p[shared] === parts[0]![shared])) ++shared;
  return parts.map((p) => (parts.length > 1 ? p.slice(shared) : p.slice(-1)).join("/"));
}

export function Runs({ data }: { data: RunsData }) {
  const [settings, set] = useState<Settings>({ clock: "step", smoothing: 0, logLoss: false });
  const [hidden, setHidden] = useState(new Set<string>());
  const names = shortNames(data.runs.map((run) => run.run));
  const runs = data.runs.map((run, i) => ({ name: names[i]!, run }));
  const charts = useMemo(() => chartsOf(runs), [data]);
  const specs = useMemo(() => charts.flatMap((chart): { chart: Chart; spec: Spec }[] => {
    const found = chart.series(settings);
    // A run that is hidden keeps its colour for the others: its line has no points.
    const series = names.map((name) => ({ name, points: hidden.has(name) ? [] : found.find((s) => s.name === name)?.points ?? [] }));
    if (series.every((s) => s.points.length === 0)) return [];
    return [{ chart, spec: { kind: "lines", x: settings.clock, y: chart.y, series, caption: chart.caption, logY: settings.logLoss && chart.log } }];
  }), [charts, settings, hidden]);
  const toggle = (name: string) => setHidden((old) => {
    const next = new Set(old);
    if (!next.delete(name)) next.add(name);
    return next;
  });
  return (
    <main class="page-runs" id="top">
      <header class="masthead">
        <p class="eyebrow"><span>Isomer {data.version} · runs</span><ThemeButton /></p>
        <h1>{runs.length === 1 ? names[0] : plural(runs.length, "run")}</h1>
        <Problems all={data.problems} />
        <Table runs={runs} hidden={hidden} toggle={toggle} />
        <Controls settings={settings} set={set} />
      </header>
      <div class="charts">
        {specs.map(({ chart, spec }) => (
          <section key={chart.id} aria-label={chart.title}><h2>{chart.title}</h2><Figure spec={spec} name={chart.id} /></section>
        ))}
      </div>
      {specs.length === 0 && <p class="note">No metrics are there to draw.</p>}
    </main>
  );
}
