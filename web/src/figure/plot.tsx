// A figure of any kind as SVG: a function of its data and a width alone, so that pages, saved files and docs show the same.
import { drawBars, drawIntervals, drawMatrix } from "./blocks.tsx";
import { drawCurves, drawScatter } from "./curves.tsx";
import { type Drawing, Svg } from "./frame.tsx";
import { drawPlane } from "./plane.tsx";
import { describe, type Spec } from "./spec.ts";

export function draw(spec: Spec, width: number, height = 290): Drawing {
  switch (spec.kind) {
    case "bars": return drawBars(spec, width, height);
    case "matrix": return drawMatrix(spec, width);
    case "scatter": return drawScatter(spec, width, height);
    case "intervals": return drawIntervals(spec, width);
    case "plane": return drawPlane(spec, width);
    default: return drawCurves(spec, width, height);
  }
}

export function Plot({ spec, width, drawing = draw(spec, width) }: { spec: Spec; width: number; drawing?: Drawing }) {
  return <Svg width={width} height={drawing.height} label={describe(spec)}>{drawing.body}</Svg>;
}
