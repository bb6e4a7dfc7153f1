// The page: reads what the program placed into it, and shows the study, the runs or the explorer.
import { render } from "preact";
import { readData } from "./data.ts";
import { Explorer } from "./explorer/page.tsx";
import { scrollToAddress, ThemeButton } from "./parts.tsx";
import { Report } from "./report.tsx";
import { Runs } from "./runs.tsx";

const data = readData(document.getElementById("data")?.textContent ?? "");
const root = document.getElementById("root")!;

if (typeof data === "string") {
  render(<main class="message"><p class="eyebrow"><span>Isomer</span><ThemeButton /></p><h1>Nothing to show</h1><p>{data}</p></main>, root);
} else {
  document.title = { study: "Isomer: the study", runs: "Isomer: runs", explore: "Isomer: explorer" }[data.kind];
  render(data.kind === "study" ? <Report data={data} /> : data.kind === "runs" ? <Runs data={data} /> : <Explorer data={data} />, root);
}
scrollToAddress();
