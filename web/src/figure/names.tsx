// Names of scattered dots. Those that lie together share a block of names, where there is room near them.
import { type Area, Marker } from "./frame.tsx";
import { textWidth } from "./scales.ts";

interface Box { x: number; y: number; w: number; h: number }
const meet = (a: Box, b: Box): boolean => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

interface Dot { x: number; y: number; name: string }
export interface Block<D extends Dot> { dots: D[]; box: Box; middle: { x: number; y: number } }

const LINE = 12, SIZE = 11, MARK = 11; // pixels: of a line, of its letters, of what stands before a name in a block
const NEAR = 9; // dots that are no further apart look like one
const STEP = 6; // of the places that are tried

/** Dots in groups, the largest group first. */
function together<D extends Dot>(dots: D[]): D[][] {
  const groups: D[][] = [];
  for (const dot of dots) {
    const group = groups.find(([first]) => Math.abs(first!.x - dot.x) <= NEAR && Math.abs(first!.y - dot.y) <= NEAR);
    if (group) group.push(dot);
    else groups.push([dot]);
  }
  return groups.sort((a, b) => b.length - a.length);
}

/** How far a box is from a place. */
function distance(box: Box, { x, y }: { x: number; y: number }): number {
  return Math.hypot(Math.max(box.x - x, 0, x - box.x - box.w), Math.max(box.y - y, 0, y - box.y - box.h));
}

/** Blocks of names that cover neither dots nor each other, as near as there is room, and rather not on whiskers; a block without room is cut in two. What has no room at all is found by pointing. */
export function blocksOf<D extends Dot>(dots: D[], whiskers: Box[], area: Area): Block<D>[] {
  const taken: Box[] = dots.map(({ x, y }) => ({ x: x - 6, y: y - 6, w: 12, h: 12 })), blocks: Block<D>[] = [];
  const waiting = together(dots);
  for (let group = waiting.shift(); group; group = waiting.shift()) {
    const middle = { x: group.reduce((sum, d) => sum + d.x, 0) / group.length, y: group.reduce((sum, d) => sum + d.y, 0) / group.length };
    const w = Math.max(...group.map((d) => textWidth(d.name, SIZE))) + 4 + (group.length > 1 ? MARK : 0), h = LINE * group.length;
    let best: Box | null = null, least = Infinity;
    for (let y = area.top - 6; y + h <= area.bottom; y += STEP)
      for (let x = area.left + 2; x + w <= area.right + 8; x += STEP) {
        const box = { x, y, w, h };
        const cost = distance(box, middle) + (x > middle.x ? 0 : 5) + 25 * whiskers.filter((one) => meet(one, box)).length;
        if (cost < least && !taken.some((other) => meet(other, box))) [best, least] = [box, cost];
      }
    if (best) {
      taken.push(best);
      blocks.push({ dots: group, box: best, middle });
    } else if (group.length > 1) {
      const half = Math.ceil(group.length / 2);
      waiting.push(group.slice(0, half), group.slice(half));
    }
  }
  return blocks;
}

/** Numbers in the place of names, and below the figure what they stand for: for many names and little room. */
export function numbered<D extends Dot>(dots: D[], width: number): { numbers: D[]; lines: string[] } {
  const groups = together(dots).sort((a, b) => a[0]!.x - b[0]!.x || a[0]!.y - b[0]!.y), lines: string[] = [];
  groups.forEach((group, i) => {
    const names = group.map((d, n) => d.name + (n + 1 < group.length ? "," : ""));
    let line = `${i + 1}`;
    for (const name of names) {
      if (textWidth(`${line} ${name}`, SIZE) > width) [line] = [(lines.push(line), "   ")];
      line += ` ${name}`;
    }
    lines.push(line);
  });
  return { numbers: groups.map((group, i) => ({ ...group[0]!, name: String(i + 1) })), lines };
}

/** Lines of text below a figure. */
export function Lines({ lines, x, y }: { lines: string[]; x: number; y: number }) {
  return <g>{lines.map((line, i) => <text key={i} x={x} y={y + 15 * (i + 1)} font-size={SIZE} fill="var(--ink)" style={{ whiteSpace: "pre" }}>{line}</text>)}</g>;
}

/** A block, with a line to its dots where it had to go further. */
export function Names<D extends Dot>({ block: { dots, box, middle }, look }: { block: Block<D>; look: (dot: D) => number }) {
  const several = dots.length > 1;
  const end = { x: Math.min(Math.max(middle.x, box.x), box.x + box.w), y: Math.min(Math.max(middle.y, box.y), box.y + box.h) };
  return (
    <g>
      {Math.hypot(end.x - middle.x, end.y - middle.y) > 14 && <line x1={middle.x} y1={middle.y} x2={end.x} y2={end.y} stroke="var(--muted)" stroke-opacity={0.55} />}
      {dots.map((dot, i) => (
        <g key={dot.name}>
          {several && <g transform={`translate(${box.x + 5},${box.y + LINE * (i + 0.5)}) scale(0.7)`}><Marker i={look(dot)} x={0} y={0} /></g>}
          <text x={box.x + (several ? MARK : 0) + 1} y={box.y + LINE * (i + 1) - 3} font-size={SIZE} fill="var(--ink)" stroke="var(--surface)" stroke-width={3} paint-order="stroke">{dot.name}</text>
        </g>
      ))}
    </g>
  );
}
