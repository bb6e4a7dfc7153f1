"""Trains the same models in Isomer and in PyTorch, and lets them make tokens, interleaved in the same run. See README.md."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import train_cases
import train_report
from run import numbers, progress, words
from train_report import Timing
from workers import Worker

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODES = ("eager", "compiled")
LOSS_LIMIT = 1e-4  # a peer whose losses differ by more, relatively, trains another model
SLOW, SLOW_ROUNDS = 8.0, 2  # a peer whose steps take more seconds takes part in the first rounds only


def shapes(text):
    return [tuple(int(n) for n in word.split("x")) for word in words(text)]


def arguments():
    parser = argparse.ArgumentParser(prog="bench/train", description=__doc__)
    parser.add_argument("--threads", type=numbers, default=[1, 2], help="for example 1,2")
    parser.add_argument("--parts", type=words, default=["train", "generate"], help="of train,generate")
    parser.add_argument("--presets", type=words, default=list(train_cases.RATIO),
                        help="for example gla,mlstm; one without a PyTorch twin is timed alone; all: every preset, Isomer alone")
    parser.add_argument("--shapes", type=shapes, default=list(train_cases.SHAPES), help="sequences x tokens, as 16x512,2x4096")
    parser.add_argument("--modes", type=words, default=list(MODES), help=f"of PyTorch: {','.join(MODES)}")
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    parser.add_argument("--isomer", default=str(ROOT / "build" / "isomer"), metavar="PROGRAM")
    options = parser.parse_args()
    for given, known in ((options.parts, ("train", "generate")), (options.modes, MODES)):
        if unknown := set(given) - set(known):
            parser.error(f"expected some of {', '.join(known)}, got {', '.join(sorted(unknown))}")
    if "all" in options.presets:
        rows = json.loads(subprocess.run([options.isomer, "list", "--json"], capture_output=True, check=True).stdout)["rows"]
        options.presets, options.modes = [row["preset"] for row in rows], []
        options.parts = [part for part in options.parts if part == "train"]
    return options


class Bench:
    """The processes of one run. Each case has new ones, so that the most memory they took is the case's."""

    def __init__(self, options, folder):
        self.options, self.weights = options, os.path.join(folder, "weights.safetensors")
        environment = {"ISOMER": os.path.abspath(options.isomer),
                       "TORCHINDUCTOR_CACHE_DIR": str(ROOT / "build" / "bench-inductor")}
        self.isomer = Worker("isomer", environment)
        self.peers = {mode: Worker("torch_train", environment, timeout=900) for mode in options.modes}

    def about(self):
        some = [("isomer", self.isomer), *[("torch", worker) for worker in list(self.peers.values())[:1]]]
        return {name: worker.ask(op="about") for name, worker in some}

    def close(self):
        for worker in (self.isomer, *self.peers.values()):
            worker.close()

    def case(self, op, case, rounds, repeat):
        """{who: Timing}, Isomer first, and the peers that can do the case."""
        # Isomer's first step allocates, and its second takes what the first needed as one block.
        timings = {"isomer": Timing(self.isomer.ask(op=op, case=case, repeat=max(2, repeat), save=self.weights))}
        if timings["isomer"].skip is None:
            for mode, worker in self.peers.items():
                timings[mode] = self.prepared(op, case, mode, worker, repeat, timings["isomer"])
        for number in range(0 if timings["isomer"].skip else rounds):
            self.round(op, case, timings, number, repeat)
        self.close()
        return timings

    def prepared(self, op, case, mode, worker, repeat, ours):
        """What the first calls gave, or why the peer is not timed."""
        if case["preset"] not in train_cases.RATIO:
            return Timing({"skip": "no twin in PyTorch"})
        timing = Timing(worker.ask(op=op, case=case | {"mode": mode}, weights=self.weights, repeat=repeat))
        if timing.skip is None:
            timing.skip = difference(case, timing.first, ours.first)
        if timing.skip is not None:
            worker.close()
        return timing

    def round(self, op, case, timings, number, repeat):
        """Everybody's turn, and what the machine can do in the same seconds."""
        ours = timings["isomer"]
        ours.add(self.isomer.ask(op=op, case=case, repeat=repeat))
        ours.limits.append(self.limit(op, case, ours))
        for mode, worker in self.peers.items():
            timing = timings[mode]
            if timing.skip is None and (number < SLOW_ROUNDS or min(timing.first["seconds"]) < SLOW):
                timing.add(worker.ask(op=op, case=case | {"mode": mode}, weights=self.weights, repeat=repeat))

    def limit(self, op, case, ours):
        """Flops or bytes per second. The better product is the machine's; PyTorch's stands beside Isomer's."""
        if op == "generate":
            answer = self.isomer.ask(op="read", threads=case["threads"], bytes=ours.first["bytes"])
            return {"isomer": 1e9 * answer.get("gb_per_s", 0)}
        some = {"isomer": self.isomer} | ({"torch": next(iter(self.peers.values()))} if self.peers else {})
        return {name: 1e9 * worker.ask(op="peak", threads=case["threads"]).get("gflops", 0) for name, worker in some.items()}


def difference(case, theirs, ours):
    """Why two sides do not compute the same; None if they do."""
    if theirs.get("parameters") != ours.get("parameters"):
        return f"another model: {theirs['parameters']} parameters, not {ours['parameters']}"
    for got, want in zip(theirs.get("losses", ()), ours.get("losses", ())):
        if not abs(got - want) <= LOSS_LIMIT * want:
            return f"computes something else: a loss of {got:.5f}, not {want:.5f}"
    # Later tokens may differ where two are about as likely, and all that follow with them.
    if case.get("weights") == "float32" and theirs["tokens"][0] != ours["tokens"][0]:
        return f"computes something else: the first token is {theirs['tokens'][0]}, not {ours['tokens'][0]}"
    return None


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        table = train_report.Table(bench.about(), options.modes)
        try:
            run(options, bench, table)
        finally:
            progress("")
            bench.close()
    table.finish()
    if options.json:
        table.write_json(options.json)
    return 0 if table.complete else 1


def run(options, bench, table):
    train_rounds, stream_rounds = (2, 3) if options.quick else (5, 7)
    training = [train_cases.training(preset, shape, threads)
                for threads in options.threads for shape in options.shapes for preset in options.presets]
    streaming = [train_cases.streaming(preset, weights, threads) for threads in options.threads
                 for preset in train_cases.STREAM_PRESETS for weights in train_cases.STREAM_RATIO]
    plans = {"train": (training, train_rounds, table.train_head, table.train),
             "generate": (streaming, stream_rounds, table.stream_head, table.stream)}
    for part in options.parts:
        cases, rounds, head, add = plans[part]
        head()
        for number, case in enumerate(cases, 1):
            progress(f"{part} [{number}/{len(cases)}] {train_cases.name(case)}, threads {case['threads']}")
            add(case, bench.case(part, case, rounds, case.get("tokens", 1)))


if __name__ == "__main__":
    sys.exit(main())
