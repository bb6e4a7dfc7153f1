"""The table on the terminal and the rows as JSON."""

import json
import platform
import subprocess
from statistics import median

import cases
import targets

CELL = 50


class Notes:
    """Footnotes, each printed once."""

    def __init__(self):
        self.texts = []

    def __call__(self, text):
        if text not in self.texts:
            self.texts.append(text)
        return f"[{self.texts.index(text) + 1}]"

    def print(self):
        for number, text in enumerate(self.texts, 1):
            print(f"[{number}] {text}")


class Table:
    """Prints a row as soon as its case is timed. `ratio(peer, ours)` compares two timings."""

    def __init__(self, names, ratio):
        self.peers, self.ratio = [name for name in names if name != "isomer"], ratio
        self.rows, self.own, self.note, self.peaks, self.versions = [], [], Notes(), {}, {}
        self.ours_complete = True

    def about(self, answers):
        self.versions = {name: answer.get("version", "-") for name, answer in answers.items()}
        print("  ".join(f"{name}: {version}" for name, version in self.versions.items()))
        print("us per token: median (best); ratio = peer time / Isomer time; error against Isomer; target and whether it is met,")
        print("and of a miss the ratio at the sgemm peak with no more flops than the recurrence has\n")
        print(f"{'case':<50}{'thr':>4}{'isomer':>18}{'peak':>16}  " + "".join(f"{name:<{CELL}}" for name in self.peers).rstrip())

    def add(self, case, timings, peak):
        if peak is not None:
            self.peaks[case["threads"]] = peak.get("gflops")
        ours = timings["isomer"]
        base = self.row(case, ours)
        compared = {name: self.compare(case, name, timings[name], ours) for name in self.peers if not timings[name].skip}
        self.rows += [base | row for row in compared.values()] or [base]
        cells = "".join(f"{self.cell(case, name, timings[name], compared.get(name)):<{CELL}}" for name in self.peers)
        ours_text = f"{self.times(case, ours):>18}{self.share(case, base):>16}"
        print(f"{cases.name(case):<50}{case['threads']:>4}{ours_text}  {cells}".rstrip(), flush=True)
        if ours.skip:
            self.ours_complete = False
        for what, value, limit, met in self.compare_own(case, ours):
            self.own.append(f"{what}: {cases.name(case)}, threads {case['threads']}: {value:.2f} ({limit} {'ok' if met else 'no'})")

    def row(self, case, ours):
        """The fields of contracts.md that are about us; None where Isomer has no number."""
        seconds = None if ours.skip else median(ours.all())
        flops, peak = ours.answer.get("flops"), self.peaks.get(case["threads"])
        gflops = flops / seconds / 1e9 if flops and seconds else None
        return {
            "subject": case["subject"], "variant": case["variant"], "form": ours.answer.get("form"), "direction": case["direction"],
            **{name: case[name] for name in ("B", "T", "H", "K", "V", "threads")}, "type": "F32",
            **({"S": case["S"]} if case["direction"] == "step" and case["subject"] == "attention" else {}),
            **statistics(case, ours, ""), "gflops": gflops, "peak_share": gflops / peak if gflops and peak else None,
            "state_bytes": ours.answer.get("state_bytes"), "error": ours.error,
            **{key(what): value for what, value, _, _ in self.compare_own(case, ours)}, "peer": None, "ratio": None,
        }

    def compare(self, case, name, timing, ours):
        """The fields that are about a peer."""
        ratio = None if ours.skip else self.ratio(timing, ours)
        target = targets.ratio(case, name)
        at_peak = targets.at_peak(case, ratio, None if ours.skip else median(ours.all()), ours.answer.get("flops"),
                                  self.peaks.get(case["threads"]))
        return {"peer": name, "ratio": ratio, "peer_form": timing.answer.get("form"), **statistics(case, timing, "peer_"),
                "peer_error": timing.error, "target": target, "met": None if None in (target, ratio) else ratio >= target,
                "ratio_at_peak": at_peak}

    def compare_own(self, case, ours):
        """What targets.py compares between our own cases."""
        for what, (_, timing) in ours.others.items():
            if not (ours.skip or timing.skip):
                yield what, *targets.judge(case, what, self.ratio(timing, ours))

    def cell(self, case, name, timing, row):
        if timing.skip:
            return "- " + self.note(f"{name}: {timing.skip}")
        caveat = timing.answer.get("caveat")
        parts = (self.times(case, timing), row["ratio"] and f"{row['ratio']:.2f}x", f"{timing.error:.0e}",
                 verdict(row["target"], row["met"], row["ratio_at_peak"]), caveat and self.note(f"{name}: {caveat}"))
        return " ".join(filter(None, parts))

    def times(self, case, timing):
        if timing.skip:
            return "- " + self.note(f"isomer: {timing.skip}")
        values = statistics(case, timing, "")
        return f"{values['us_per_token']:.4g} ({values['us_best']:.4g})"

    def share(self, case, base):
        if base["peak_share"] is None:
            return "-"
        target = targets.peak(case)
        return " ".join(filter(None, (f"{base['peak_share']:.0%}", target and verdict(f"{target:.0%}", base["peak_share"] >= target))))

    def finish(self):
        print()
        for line in self.own:
            print(line)
        for threads, gflops in self.peaks.items():
            print(f"sgemm peak, threads {threads}: " + (f"{gflops:.0f} GFLOP/s" if gflops else "-"))
        judged = [row["met"] for row in self.rows if row.get("met") is not None]
        if judged:
            beyond = [row for row in self.rows if row.get("met") is False and (row["ratio_at_peak"] or row["target"]) < row["target"]]
            print(f"ratio targets met: {sum(judged)} of {len(judged)}; beyond the sgemm peak: {len(beyond)}")
        self.note.print()

    def write_json(self, path):
        about = machine() | {"versions": self.versions, "sgemm_gflops": self.peaks}
        with open(path, "w") as file:
            json.dump({"schema": 1, "machine": about, "rows": self.rows}, file, indent=1)


def statistics(case, timing, prefix):
    if timing.skip:
        return {prefix + "us_per_token": None}
    samples = timing.all()
    scale = 1e6 / (case["B"] * case["T"])
    middle = median(samples)
    return {prefix + "us_per_token": middle * scale, prefix + "us_best": min(samples) * scale,
            prefix + "us_mad": median(abs(s - middle) for s in samples) * scale, prefix + "samples": len(samples)}


def key(what):
    """A field's name: backward_forward, two_threads_against_one."""
    return "_".join(what.replace("/", " ").split())


def verdict(target, met, at_peak=None):
    if target is None or met is None:
        return None
    return f"(>={target} {'ok' if met else 'no'}{'' if met or at_peak is None else f', peak {at_peak:.2f}'})"


def machine():
    """What a reader needs to place the numbers."""
    with open("/proc/cpuinfo") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return {"cpu": models[0] if models else platform.processor(), "cores": len(models),
            "python": platform.python_version(), "commit": commit}
