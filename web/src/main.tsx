// The page: reads what the program placed into it, and shows the study or the runs.
import { render } from "preact";
import { readData } from "./data.ts";
import { ThemeButton } from "./parts.tsx";
import { Report } from "./report.tsx";
import { Runs } from "./runs.tsx";

const data = readData(document.getElementById("data")?.textContent ?? "");
const root = document.getElementById("root")!;

if (typeof data === "string") {
  render(<main class="message"><p class="eyebrow"><span>Isomer</span><ThemeButton /></p><h1>Nothing to show</h1><p>{data}</p></main>, root);
} else {
  document.title = data.kind === "study" ? "Isomer: the study" : "Isomer: runs";
  render(data.kind === "study" ? <Report data={data} /> : <Runs data={data} />, root);
}
// The element that the address names was not there when the page was read.
if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
