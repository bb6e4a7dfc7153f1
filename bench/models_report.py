"""The table of bench/models on the terminal, and the rows as JSON."""

import json
from statistics import median

import models_cases
from report import Notes, machine


class Timing:
    """What one side measured for one case: `first` is the answer that loaded the model, rounds are what counts."""

    def __init__(self, first):
        self.first, self.skip, self.rounds, self.reads = first, first.get("skip"), [], []

    def add(self, answer):
        if "skip" in answer:
            self.skip = answer["skip"]
        else:
            self.rounds.append(answer)

    def seconds(self, part):
        return [seconds for answer in self.rounds for seconds in answer[part]]


def ratio(theirs, ours, part):
    """Their time over ours: the median over the rounds that both had."""
    return median(median(t[part]) / median(o[part]) for t, o in zip(theirs.rounds, ours.rounds))


def error(theirs, ours):
    """The largest difference of logits over the largest logit, of those that are compared."""
    return max(abs(t - o) for t, o in zip(theirs["logits"], ours["logits"])) / max(abs(o) for o in ours["logits"])


class Table:
    def __init__(self, about):
        self.about, self.rows, self.judged, self.note, self.complete = about, [], [], Notes(), True
        for name, answer in about.items():
            print(f"{name}: {answer.get('version', answer.get('skip'))}")
        print(f"\nA prompt at once and {models_cases.TOKENS} tokens after it, one at a time: tokens/s as median (best); ratio: their time over "
              "Isomer's; of read: bytes of\nweights and state x tokens/s over the speed of reading as many; seconds to load, and from the start "
              "of loading to the first token;\nmost memory; error: the largest difference of logits from Isomer's in float32 over the largest logit\n")
        print(f"{'case':<28}{'thr':>3}  {'side':<15}{'prefill':<18}{'ratio':<18}{'decode':<18}{'ratio':<8}{'of read':<16}{'load':<7}"
              f"{'first':<15}{'MiB':<7}error")

    def add(self, case, timings):
        ours = timings["isomer"]
        exact = timings.get("isomer_float32", ours)  # models.EXACT
        self.complete &= ours.skip is None
        for side, timing in timings.items():
            title = f"{models_cases.name(case):<28}{case['threads']:>3}  {side:<15}"
            if timing.skip or not timing.rounds:
                self.rows.append({"side": side, "skip": timing.skip} | case)
                print(title + "- " + self.note(f"{side}: {timing.skip}"), flush=True)
                continue
            row = self.row(case, side, timing, ours, exact)
            self.rows.append(row)
            print((title + self.line(row)).rstrip(), flush=True)

    def row(self, case, side, timing, ours, exact):
        # Of the first answer: later on Isomer's process reads other memory, to measure how fast that is.
        row = {"side": side} | case | {name: timing.first[name] for name in ("load", "first", "peak_mib")}
        for part, tokens in (("prefill", case["prompt"]), ("decode", 1)):
            seconds = timing.seconds(part)
            row[part] = tokens / median(seconds) if seconds else None
            row[part + "_best"] = tokens / min(seconds) if seconds else None
            row[part + "_ratio"] = ratio(timing, ours, part) if seconds and side != "isomer" else None
        if side == "isomer" and timing.reads:
            row["bytes"] = timing.first["bytes"]
            row["of_read"] = median(row["bytes"] / median(answer["decode"]) / read for answer, read in zip(timing.rounds, timing.reads))
            row["read_gb_per_s"] = median(timing.reads) / 1e9
        row["error"] = error(timing.first, exact.first) if timing is not exact else None
        return row | self.judge(case, side, row)

    def judge(self, case, side, row):
        """{target: (what is to be reached, whether it is)}."""
        wanted = {"prefill_ratio": models_cases.PREFILL_RATIO.get((side, case["weights"]))}
        if side == "isomer":
            wanted["of_read"] = models_cases.READ_SHARE if row.get("of_read") else None
            shortest = case["prompt"] == min(models_cases.MODELS[case["name"]]["prompts"])
            wanted["first"] = models_cases.FIRST_SECONDS.get((case["name"], case["weights"])) if shortest else None
        met = {name: row[name] <= target if name == "first" else row[name] >= target for name, target in wanted.items() if target}
        self.judged += met.values()
        return {"targets": {name: wanted[name] for name in met}, "met": met}

    def line(self, row):
        def judged(name, text):
            target = row["targets"].get(name)
            if target is None:
                return text
            shown = f"{target:.0%}" if name == "of_read" else target
            return f"{text} ({'<=' if name == 'first' else '>='}{shown} {'ok' if row['met'][name] else 'no'})"

        def rates(part):
            return f"{row[part]:.1f} ({row[part + '_best']:.1f})" if row[part] else ""

        def times(part):
            return f"{row[part + '_ratio']:.2f}x" if row[part + "_ratio"] else ""

        read = judged("of_read", f"{row['of_read']:.0%}") if row.get("of_read") else ""
        wrong = f"{row['error']:.1e}" if row["error"] is not None else ""
        first = judged("first", f"{row['first']:.2f}")
        return (f"{rates('prefill'):<18}{judged('prefill_ratio', times('prefill')):<18}{rates('decode'):<18}{times('decode'):<8}{read:<16}"
                f"{row['load']:<7.2f}{first:<15}{row['peak_mib']:<7}{wrong}")

    def finish(self):
        reads = {}
        for row in self.rows:
            if row.get("read_gb_per_s"):
                reads.setdefault(row["threads"], []).append(row["read_gb_per_s"])
        print()
        for threads, values in reads.items():
            print(f"read, threads {threads}: {min(values):.1f} to {max(values):.1f} GB/s")
        if self.judged:
            print(f"targets met: {sum(self.judged)} of {len(self.judged)}")
        self.note.print()

    def write_json(self, path):
        with open(path, "w") as file:
            json.dump({"schema": 1, "machine": machine() | {"sides": self.about}, "rows": self.rows}, file, indent=1)
