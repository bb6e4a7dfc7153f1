// Files of a figure: its picture as SVG, its data as CSV.
import { literal } from "./theme.ts";

function save(name: string, type: string, text: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The picture by itself: colours written out, on white. */
function standalone(svg: SVGElement): string {
  const text = literal(new XMLSerializer().serializeToString(svg));
  return text.replace(/(<svg[^>]*>)/, '$1<rect width="100%" height="100%" fill="#ffffff"/>') + "\n";
}

/** A text as a cell of CSV. */
export const csvCell = (text: string): string => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

export function SaveButtons({ name, svg, csv }: { name: string; svg: () => SVGElement; csv: () => string }) {
  return (
    <>
      <button type="button" onClick={() => save(`${name}.svg`, "image/svg+xml", standalone(svg()))}>SVG<span class="sr"> of {name}</span></button>
      <button type="button" onClick={() => save(`${name}.csv`, "text/csv", csv())}>CSV<span class="sr"> of {name}</span></button>
    </>
  );
}
