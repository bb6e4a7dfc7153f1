// Many numbers as one picture: a pixel each, drawn large.
import { useEffect, useRef, useState } from "preact/hooks";
import { num } from "../format.ts";

interface Picture { rows: number; columns: number; colour: (row: number, column: number) => string | null; label?: string; say?: (row: number, column: number) => string; choose?: (row: number) => void; mark?: number; marked?: number; height?: number }

const bytes = (hex: string): [number, number, number] => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) as [number, number, number];

export function Pixels({ rows, columns, colour, label, say, choose, mark, marked = columns, height }: Picture) {
  const ref = useRef<HTMLCanvasElement>(null);
  const [tip, setTip] = useState<{ x: number; y: number; text: string } | null>(null);
  useEffect(() => {
    const context = ref.current!.getContext("2d")!, image = context.createImageData(columns, rows);
    for (let r = 0; r < rows; ++r)
      for (let c = 0; c < columns; ++c) {
        const hex = colour(r, c);
        if (hex) image.data.set([...bytes(hex), 255], 4 * (r * columns + c));
      }
    context.putImageData(image, 0, 0);
  });
  const place = (event: MouseEvent): [number, number] => {
    const box = ref.current!.getBoundingClientRect();
    const at = (offset: number, size: number, n: number) => Math.min(n - 1, Math.max(0, Math.floor((offset / size) * n)));
    return [at(event.clientY - box.top, box.height, rows), at(event.clientX - box.left, box.width, columns)];
  };
  const point = (event: PointerEvent) => {
    const [row, column] = place(event), box = ref.current!.getBoundingClientRect();
    const text = say?.(row, column);
    setTip(text ? { x: event.clientX - box.left, y: event.clientY - box.top, text } : null);
  };
  return (
    <div class="pixels" style={{ height: height && `${height}px` }}>
      <canvas ref={ref} width={columns} height={rows} role={label ? "img" : undefined} aria-label={label} aria-hidden={label === undefined} onPointerMove={say && point} onPointerLeave={() => setTip(null)} onClick={choose && ((e) => choose(place(e)[0]))} style={{ cursor: choose && "pointer" }} />
      {mark !== undefined && mark < rows && <div class="row-mark" style={{ top: `${(100 * mark) / rows}%`, height: `${100 / rows}%`, width: `${(100 * marked) / columns}%` }} />}
      {tip && <div class="tip" style={{ top: Math.max(0, tip.y - 34), ...(tip.x > 200 ? { right: `calc(100% - ${tip.x - 6}px)` } : { left: tip.x + 10 }) }}>{tip.text}</div>}
    </div>
  );
}

/** A number that stands for a weight between two words. */
export const weightText = (words: string[], t: number, s: number, value: number): string => `${words[t]} ← ${words[s]}: ${num(value, 3)}`;
