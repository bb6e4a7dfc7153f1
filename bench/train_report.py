"""The tables of bench/train on the terminal, and the rows as JSON."""

import json
from statistics import median

import train_cases
from report import Notes, machine, verdict

CELL = 38


class Timing:
    """What one side measured for one case: `first` is the answer that prepared it, rounds are what counts."""

    def __init__(self, first):
        self.first, self.skip = first, first.get("skip")
        self.rounds, self.last, self.limits = [], first, []

    def add(self, answer):
        if "skip" in answer:
            self.skip = answer["skip"]
        else:
            self.rounds.append(answer["seconds"])
            self.last = answer

    def all(self):
        return [seconds for part in self.rounds for seconds in part]

    def rates(self, tokens):
        """Tokens per second: median and best."""
        return tokens / median(self.all()), tokens / min(self.all())


def ratio(theirs, ours):
    """Their time over ours: the median over the rounds that both had."""
    return median(median(t) / median(o) for t, o in zip(theirs.rounds, ours.rounds))


def share(timing, ours, work):
    """Work per second over what the machine could do in the same round; the best way to do it counts."""
    return median(work / median(part) / max(limit.values()) for part, limit in zip(timing.rounds, ours.limits))


class Table:
    def __init__(self, about, modes):
        self.about, self.modes = about, modes
        self.rows, self.judged, self.note, self.limits, self.complete = [], [], Notes(), {}, True
        for name, answer in about.items():
            print(f"{name}: {answer.get('version', answer.get('skip'))}, {answer.get('isa', 'unknown')} instructions")

    def head(self, text, share_name):
        print(f"\n{text}\n")
        cells = "".join(f"{'torch ' + mode:<{CELL}}" for mode in self.modes)
        print(f"{'case':<24}{'thr':>4}  {'isomer tokens/s':<18}{share_name:<16}{'MiB':<11}{cells}ratio".rstrip())

    def train_head(self):
        self.head("Training, {layers} layers, width {width}, vocabulary {vocabulary}, float32, AdamW: tokens/s as median (best); "
                  "of peak: (6 x parameters + law flops) x tokens/s\nover the speed of sgemm; most memory (ok: no more than "
                  "PyTorch's); ratio to PyTorch's better mode".format(**train_cases.MODEL), "of peak")

    def stream_head(self):
        self.head("Tokens one at a time, {layers} layers, width {width}, vocabulary {vocabulary}, after {prompt} tokens: "
                  "tokens/s as median (best); of read: bytes of weights\nand state x tokens/s over the speed of reading as many; "
                  "most memory; ratio to PyTorch's better mode, in float32".format(**train_cases.STREAM), "of read")

    def train(self, case, timings):
        ours, tokens = timings["isomer"], case["B"] * case["T"]
        for limit in ours.limits:
            for name, flops in limit.items():
                self.limits.setdefault(f"sgemm, {name}, threads {case['threads']}", []).append(flops / 1e9)
        work = tokens * (6 * ours.first.get("parameters", 0) + ours.first.get("law_flops_per_token", 0))
        least, wanted = train_cases.train_targets(case)
        self.add(case, "train", timings, {"tokens": tokens, "work": work, "share": least, "ratio": wanted})

    def stream(self, case, timings):
        ours = timings["isomer"]
        for limit in ours.limits:
            self.limits.setdefault(f"read, threads {case['threads']}, GB/s", []).append(limit["isomer"] / 1e9)
        weights = case["weights"]
        self.add(case, "generate", timings, {"tokens": 1, "work": ours.first.get("bytes", 0),
                                             "share": train_cases.READ_SHARE.get(weights),
                                             "ratio": train_cases.STREAM_RATIO[weights]})

    def add(self, case, direction, timings, targets):
        """A line, and a row for each peer; `work` is of one step."""
        ours = timings["isomer"]
        title = f"{train_cases.name(case):<24}{case['threads']:>4}  "
        if ours.skip:
            self.complete = False
            self.rows.append({"subject": case["preset"], "direction": direction, "skip": ours.skip} | case)
            print(title + "- " + self.note(f"isomer: {ours.skip}"), flush=True)
            return
        base = self.row(case, direction, ours, targets)
        base["met_share"] = self.judge(base["share"], targets["share"])
        compared = {mode: self.compare(timings[mode], ours, targets) | {"peer": f"torch {mode}"}
                    for mode in self.modes if timings[mode].rounds}
        best = min(compared.values(), key=lambda row: row["ratio"], default={})
        if best:
            best |= {"target": targets["ratio"], "met": self.judge(best["ratio"], targets["ratio"]),
                     "met_memory": self.judge(best["peer_peak_mib"], base["peak_mib"])}
        self.rows += [base | row for row in compared.values()] or [base]
        cells = [self.cell(mode, timings[mode], compared.get(mode)) for mode in self.modes]
        print(title + self.line(base, targets, best, cells), flush=True)

    def line(self, base, targets, best, cells):
        least = targets["share"] and verdict(f"{targets['share']:.0%}", base["met_share"])
        memory = f"{base['peak_mib']}" + (f" ({'ok' if best['met_memory'] else 'no'})" if best else "")
        last = " ".join(filter(None, (f"{best['ratio']:.2f}x", verdict(targets["ratio"], best["met"])))) if best else ""
        part = " ".join(filter(None, (f"{base['share']:.0%}", least)))
        return f"{rates(base, ''):<18}{part:<16}{memory:<11}{''.join(f'{cell:<{CELL}}' for cell in cells)}{last}".rstrip()

    def row(self, case, direction, ours, targets):
        middle, best = ours.rates(targets["tokens"])
        sizes = {name: size for name, size in case.items() if name != "preset"}
        known = ("parameters", "law_flops_per_token", "bytes", "state_bytes", "isa")
        return {"subject": case["preset"], "direction": direction, **sizes, "type": "F32", "tokens_per_s": middle,
                "tokens_per_s_best": best, "samples": len(ours.all()), "share": share(ours, ours, targets["work"]),
                "peak_mib": ours.last["peak_mib"], **{name: ours.first[name] for name in known if name in ours.first},
                "first_loss": ours.first.get("losses", [None])[0], "peer": None, "ratio": None}

    def compare(self, timing, ours, targets):
        middle, best = timing.rates(targets["tokens"])
        return {"ratio": ratio(timing, ours), "peer_form": timing.first.get("form"), "peer_tokens_per_s": middle,
                "peer_tokens_per_s_best": best, "peer_samples": len(timing.all()),
                "peer_share": share(timing, ours, targets["work"]), "peer_peak_mib": timing.last["peak_mib"],
                "peer_first_loss": timing.first.get("losses", [None])[0]}

    def cell(self, mode, timing, row):
        if row is None:
            return "- " + self.note(f"torch {mode}: {timing.skip}")
        caveat = timing.first.get("caveat")
        return " ".join(filter(None, (rates(row, "peer_"), f"{row['peer_share']:.0%}", f"{row['peer_peak_mib']} MiB",
                                      caveat and self.note(f"torch: {caveat}"))))

    def judge(self, value, target):
        if target is None:
            return None
        self.judged.append(value >= target)
        return value >= target

    def finish(self):
        print()
        for name, values in self.limits.items():
            print(f"{name}: median {median(values):.1f}, {min(values):.1f} to {max(values):.1f}")
        if self.judged:
            print(f"targets met: {sum(self.judged)} of {len(self.judged)}")
        self.note.print()

    def write_json(self, path):
        about = machine() | {"sides": self.about, "limits": {name: median(values) for name, values in self.limits.items()}}
        with open(path, "w") as file:
            json.dump({"schema": 1, "machine": about, "rows": self.rows}, file, indent=1)


def rates(row, prefix):
    return f"{row[prefix + 'tokens_per_s']:.0f} ({row[prefix + 'tokens_per_s_best']:.0f})"
