// Eigenvalues in the complex plane, with the circle that nothing grows beyond.
import { num } from "../format.ts";
import { Axes, type Drawing } from "./frame.tsx";
import { axisOf } from "./scales.ts";
import type { Point, Spec } from "./spec.ts";
import { colour } from "./theme.ts";

const LARGEST = 260; // pixels a side

/** Those that would lie on each other, once, with how many they are. */
function together(points: Point[]): { point: Point; count: number }[] {
  const all = new Map<string, { point: Point; count: number }>();
  for (const point of points) {
    const key = `${point.x.toFixed(2)},${point.y.toFixed(2)}`, found = all.get(key);
    if (found) ++found.count;
    else all.set(key, { point, count: 1 });
  }
  return [...all.values()];
}

export function drawPlane(spec: Spec, width: number): Drawing {
  const left = 42, top = 30, side = Math.min(LARGEST, width - left - 12), right = left + side, bottom = top + side;
  const points = spec.series.flatMap((s) => s.points), most = 1.08 * Math.max(1, ...points.map((p) => Math.hypot(p.x, p.y)));
  const axis = (range: [number, number]) => axisOf([-most, most], { log: false, range, room: 60, exact: true });
  const x = axis([left, right]), y = axis([bottom, top]), dots = together(points);
  const body = (
    <g>
      <Axes area={{ left, right, top, bottom }} x={x} y={y} xLabel={spec.x} yLabel={spec.y} />
      <line x1={x.at(0)} x2={x.at(0)} y1={top} y2={bottom} stroke="var(--line)" />
      <circle cx={x.at(0)} cy={y.at(0)} r={x.at(1) - x.at(0)} fill="none" stroke="var(--muted)" stroke-dasharray="3 3" />
      {dots.map(({ point }) => <circle key={`${point.x},${point.y}`} cx={x.at(point.x)} cy={y.at(point.y)} r="4" fill={colour(0)} fill-opacity="0.65" />)}
    </g>
  );
  const targets = dots.map(({ point: p, count }) => ({
    x: x.at(p.x), y: y.at(p.y), head: `${num(p.x, 3)} ${p.y < 0 ? "−" : "+"} ${num(Math.abs(p.y), 3)} i`,
    rows: [{ name: "size", text: num(Math.hypot(p.x, p.y), 3), series: -1 }, ...(count > 1 ? [{ name: "eigenvalues here", text: String(count), series: -1 }] : [])],
  }));
  return { height: bottom + 44, body, targets, pick: "nearest", area: { left, right, top, bottom } };
}

/** A figure of eigenvalues (real, imaginary). */
export function planeSpec(values: [number | null, number | null][], when: string): Spec {
  const points = values.flatMap(([x, y]) => (x === null || y === null ? [] : [{ x, y, low: y, high: y }]));
  const largest = Math.max(...points.map((p) => Math.hypot(p.x, p.y)));
  return {
    kind: "plane", x: "real part", y: "imaginary part", series: [{ name: "eigenvalue", points }],
    caption: `Eigenvalues of Λ ${when}: inside the circle the state fades, beyond it grows; the largest has size ${num(largest, 3)}.`,
  };
}
