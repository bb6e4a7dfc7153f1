"""Times Isomer beside its peers, interleaved in the same run, and prints one table. See README.md."""

import argparse
import os
import pathlib
import sys
import tempfile
from statistics import median

import numpy as np

import cases
import report
import targets
from peers import laws
from workers import Worker

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEERS = ("ort", "ggml", "torch_cpu")
ERROR_LIMIT = 1e-3  # a peer that differs by more computes another function


def words(text):
    return [word for word in text.split(",") if word]


def numbers(text):
    return [int(word) for word in words(text)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=numbers, default=[1, 2], help="for example 1,2")
    parser.add_argument("--peers", type=words,
                        default=list(PEERS if os.environ.get("PEERS") == "all" else PEERS[:2]), help=f"of {','.join(PEERS)}")
    parser.add_argument("--law", type=words, help=f"of {','.join(cases.VARIANTS)}")
    parser.add_argument("--variant", type=words, help="for example gated,kda")
    parser.add_argument("--direction", type=words, help="of forward,forward+backward,step")
    parser.add_argument("--T", type=numbers, help="these lengths, for example 512,2048; 1 is the steps")
    parser.add_argument("--K", type=numbers, help="these head sizes, for example 128")
    parser.add_argument("--quick", action="store_true", help="one length, one head size, few rounds")
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    parser.add_argument("--isomer", default=str(ROOT / "build" / "isomer"), metavar="PROGRAM")
    parser.add_argument("--npm", default=str(ROOT / "build" / "bench-npm"), metavar="FOLDER", help="where bench/setup put ggml")
    options = parser.parse_args()
    if unknown := set(options.peers) - set(PEERS):
        parser.error(f"expected peers of {', '.join(PEERS)}, got {', '.join(sorted(unknown))}")
    plan = [case for threads in options.threads for case in cases.suite(threads, options.quick, options.T, options.K)]
    plan = cases.chosen(plan, subject=options.law, variant=options.variant, direction=options.direction)
    if not plan:
        parser.error("no case has this law, variant, direction and length")
    return options, plan


class Checker:
    """Compares outputs, and gradients where the case has them, once per kind of case and worker."""

    def __init__(self, folder):
        self.folder, self.known = folder, {}

    def errors(self, case, workers):
        """{worker: largest relative error or a reason}: Isomer against the float64 law, peers against Isomer."""
        small = cases.small(case) | {"threads": case["threads"]}
        key = str(small)
        if key not in self.known:
            self.known[key] = self.compare(small, workers)
        return self.known[key]

    def compare(self, case, workers):
        x = laws.inputs(case)
        path = os.path.join(self.folder, "inputs.npz")
        np.savez(path, **x)
        want, found = laws.reference(case, x), {}
        outputs = list(want)
        for worker in workers:
            answer = worker.ask(op="check", case=case, inputs=path)
            if "skip" in answer:
                found[worker.name] = answer["skip"]
                continue
            with np.load(answer["output"]) as file:
                got = dict(file)
            # A peer need not have every gradient, but it must have every output.
            found[worker.name] = max(
                laws.error(got.get(name, np.nan), want[name]) for name in want if name in outputs or name in got)
            if worker.name == "isomer" and found["isomer"] < ERROR_LIMIT:
                want = {name: array.astype(np.float64) for name, array in got.items()
                        if name in outputs or name.startswith("grad_")}
        return found


class Timing:
    """What one worker measured for one case."""

    def __init__(self, skip=None, error=None):
        self.skip, self.error = skip, error
        self.rounds, self.answer = [], {}  # seconds of each round; the first answer
        self.others = {}  # of Isomer: what targets.others compares this case with, as (case, Timing)

    def all(self):
        return [seconds for part in self.rounds for seconds in part]


def admit(error):
    """A timing to fill, or one that says why: what is wrong is not timed."""
    if isinstance(error, str):
        return Timing(skip=error)
    wrong = error > ERROR_LIMIT
    return Timing(skip=f"computes something else: relative error {error:.1e}" if wrong else None, error=error)


def measure(case, workers, errors, budget, rounds):
    """Rounds in which every worker has its turn; each worker gets about `budget` seconds, at least three rounds."""
    timings, counts = {}, {}
    for worker in workers:
        timings[worker.name] = timing = admit(errors[worker.name])
        if timing.skip is None:
            timing.answer = worker.ask(op="time", case=case, repeat=2)
            timing.skip = timing.answer.get("skip")
        if timing.skip is None:
            counts[worker] = min(2000, budget / rounds / min(timing.answer["seconds"]))
    if any(count < 1 for count in counts.values()):
        rounds = 3
    ours = timings["isomer"]
    ours.others = {what: (other, Timing(ours.skip)) for what, other in targets.others(case).items()}
    for _ in range(rounds):
        for worker, count in counts.items():
            one_round(worker, case, count, timings[worker.name])
            for other, timing in ours.others.values() if worker.name == "isomer" else ():
                one_round(worker, other, count, timing)
    return timings


def one_round(worker, case, count, timing):
    answer = worker.ask(op="time", case=case, repeat=max(1, int(count)))
    timing.skip = timing.skip or answer.get("skip")
    timing.rounds.append(answer.get("seconds", [float("nan")]))


def ratio(peer, ours):
    """Peer time over our time: the median over rounds of the ratio of the round's medians."""
    return median(median(p) / median(o) for p, o in zip(peer.rounds, ours.rounds))


def main():
    options, plan = arguments()
    environment = {"ISOMER": os.path.abspath(options.isomer), "ISOMER_BENCH_NPM": os.path.abspath(options.npm)}
    workers = [Worker(name, environment) for name in ("isomer", *options.peers)]
    budget, rounds = (0.3, 3) if options.quick else (1.5, 7)
    table = report.Table([worker.name for worker in workers], ratio)
    table.about({worker.name: worker.ask(op="about") for worker in workers})
    try:
        with tempfile.TemporaryDirectory() as folder:
            checker = Checker(folder)
            for number, case in enumerate(plan, 1):
                progress(f"[{number}/{len(plan)}] {cases.name(case)}, threads {case['threads']}")
                peak = workers[0].ask(op="peak", threads=case["threads"]) if case["threads"] not in table.peaks else None
                timings = measure(case, workers, checker.errors(case, workers), budget, rounds)
                table.add(case, timings, peak)
    finally:
        progress("")
        for worker in workers:
            worker.close()
    table.finish()
    if options.json:
        table.write_json(options.json)
    return 0 if table.ours_complete else 1


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
