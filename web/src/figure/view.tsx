// A figure on the page: drawn to the width that there is, with values under the pointer, its data as a table, and files to save.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { num } from "../format.ts";
import { Prose } from "../parts.tsx";
import type { Drawing, Target } from "./frame.tsx";
import { draw, Plot } from "./plot.tsx";
import { csvOf, nameOf, type Spec } from "./spec.ts";
import { SaveButtons } from "./saving.tsx";
import { colour } from "./theme.ts";

function useWidth(): [preact.RefObject<HTMLDivElement>, number] {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current!;
    const measure = () => setWidth(Math.max(240, Math.floor(element.clientWidth)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

function nearest(drawing: Drawing, x: number, y: number): Target | null {
  const distance = (t: Target) => (drawing.pick === "x" ? Math.abs(t.x - x) : Math.hypot(t.x - x, t.y - y));
  let best: Target | null = null;
  for (const target of drawing.targets) if (best === null || distance(target) < distance(best)) best = target;
  return best;
}

/** Lies over the picture and knows what is under the pointer. */
function Pointing({ drawing, width }: { drawing: Drawing; width: number }) {
  const [target, setTarget] = useState<Target | null>(null);
  const follow = (event: PointerEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    setTarget(nearest(drawing, event.clientX - box.left, event.clientY - box.top));
  };
  const side = target && target.x > width / 2 ? { right: width - target.x + 10 } : { left: (target?.x ?? 0) + 10 };
  return (
    <div class="pointing" aria-hidden="true" onPointerMove={follow} onPointerDown={follow} onPointerLeave={() => setTarget(null)}>
      {target && drawing.pick === "x" && <div class="guide" style={{ left: target.x, top: drawing.area.top, height: drawing.area.bottom - drawing.area.top }} />}
      {target && drawing.pick === "nearest" && <div class="ring" style={{ left: target.x - 9, top: target.y - 9 }} />}
      {target && (
        <div class="tip" style={{ ...side, top: drawing.pick === "x" ? drawing.area.top + 4 : Math.max(0, target.y - 10) }}>
          <strong>{target.head}</strong>
          {target.rows.map((row) => (
            <div key={row.name}><span>{row.series >= 0 && <i style={{ background: colour(row.series) }} />}{row.name}</span><b>{row.text}</b></div>
          ))}
        </div>
      )}
    </div>
  );
}

const ROWS = 400; // beyond, the file has them

function DataTable({ spec }: { spec: Spec }) {
  const intervals = spec.kind === "intervals";
  const rows = spec.series.flatMap((s) => s.points.map((p) => ({ name: s.name, p })));
  const bounded = rows.some(({ p }) => p.high > p.low);
  return (
    <div class="scroll" role="region" tabIndex={0} aria-label="data of the figure">
      <table class="numbers">
        <thead>
          <tr>
            <th scope="col">{intervals ? "quantity" : "series"}</th>
            <th scope="col">{intervals ? "value" : spec.x || "x"}</th>
            {!intervals && <th scope="col">{spec.y || "y"}</th>}
            {bounded && <><th scope="col">low</th><th scope="col">high</th></>}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, ROWS).map(({ name, p }) => (
            <tr key={`${name},${p.x}`}>
              <th scope="row">{name}</th>
              <td><data value={p.x}>{nameOf(spec, p.x)}</data></td>
              {!intervals && <td><data value={p.y}>{num(p.y)}</data></td>}
              {bounded && <><td><data value={p.low}>{num(p.low)}</data></td><td><data value={p.high}>{num(p.high)}</data></td></>}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > ROWS && <p class="note">The first {ROWS} of {rows.length} rows; CSV has all.</p>}
    </div>
  );
}

export function Figure({ spec, name, title, height }: { spec: Spec; name: string; title?: string; height?: number }) {
  const [ref, width] = useWidth();
  const [table, setTable] = useState(false);
  const drawing = useMemo(() => (width > 0 ? draw(spec, width, height) : null), [spec, width]);
  const plot = useMemo(() => drawing && <Plot spec={spec} width={width} drawing={drawing} />, [drawing]);
  return (
    <figure class="figure" data-figure={name} data-kind={spec.kind}>
      {title && <p class="figure-title">{title}</p>}
      <div class="canvas" ref={ref} style={drawing ? {} : { minHeight: 120 }}>
        {plot}
        {drawing && <Pointing drawing={drawing} width={width} />}
      </div>
      <figcaption>
        <span><Prose text={spec.caption} /></span>
        <span class="tools">
          <button type="button" aria-expanded={table} onClick={() => setTable(!table)}>data<span class="sr"> of {name}</span></button>
          <SaveButtons name={name} svg={() => ref.current!.querySelector("svg")!} csv={() => csvOf(spec)} />
        </span>
      </figcaption>
      {table && <DataTable spec={spec} />}
    </figure>
  );
}
