// The colours, of the page and of figures. On the page they are variables, which the build writes into the style sheet; in a saved
// picture they are written out.

export type Theme = Record<string, string>;

export const LIGHT: Theme = {
  page: "#fbfaf7", surface: "#ffffff", soft: "#f3f1eb", ink: "#1d1f24", muted: "#5b5f68", line: "#dedad1", link: "#0a58a3",
  holds: "#00695c", fails: "#ad3c05", undecided: "#62597d", unrun: "#6b6f78",
  s0: "#0072b2", s1: "#c84e00", s2: "#00805e", s3: "#a6428b", s4: "#7a5c00", s5: "#2f86bb", s6: "#474b53", s7: "#b8325f",
};
export const DARK: Theme = {
  page: "#14161a", surface: "#1b1e24", soft: "#23272e", ink: "#e9e7e1", muted: "#a6aab3", line: "#343943", link: "#84bdf7",
  holds: "#5cc9b5", fails: "#ff9d6b", undecided: "#b9afdb", unrun: "#9a9ea7",
  s0: "#5cb6ee", s1: "#ff9462", s2: "#45cba0", s3: "#e59dd2", s4: "#dfc25a", s5: "#a5d6ff", s6: "#c9cdd5", s7: "#ff9ab4",
};

export const variables = (theme: Theme): string => Object.entries(theme).map(([name, value]) => `--${name}: ${value};`).join(" ");

export const COLOURS = 8;
export const colour = (i: number): string => `var(--s${i % COLOURS})`;
/** With more series than colours, a second round is dashed. */
export const dash = (i: number): string | undefined => [undefined, "6 3", "2 3"][Math.floor(i / COLOURS) % 3];

/** Names of the theme's colours in the text of a picture, replaced by the colours. */
export function literal(svg: string, theme: Theme = LIGHT): string {
  return svg.replace(/var\(--([a-z0-9]+)\)/g, (whole, name: string) => theme[name] ?? whole);
}

type Rgb = [number, number, number];
const rgb = (hex: string): Rgb => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) as Rgb;
const ramp = (stops: string[]) => {
  const all = stops.map(rgb);
  return (t: number): string => {
    const place = Math.min(1, Math.max(0, t)) * (all.length - 1), i = Math.min(Math.floor(place), all.length - 2), f = place - i;
    const mixed = all[i]!.map((v, c) => Math.round(v + f * (all[i + 1]![c]! - v)));
    return "#" + mixed.map((v) => v.toString(16).padStart(2, "0")).join("");
  };
};
/** Cividis, which reads alike with every kind of colour vision. */
export const sequential = ramp(["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"]);
export const diverging = ramp(["#0b4a8f", "#3f7fbf", "#8fb8dd", "#e8e8e6", "#f0b27a", "#d9721f", "#8a3b00"]);
/** Black or white, whichever reads better on a colour. */
export const textOn = (hex: string): string => {
  const [r, g, b] = rgb(hex);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#111111" : "#ffffff";
};
