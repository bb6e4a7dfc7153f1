"""Times pre-trained models in Isomer and in its peers, interleaved in the same run. See README.md."""

import argparse
import os
import pathlib
import sys

import model_files
import models_cases
import models_report
from models_report import Timing
from run import numbers, progress, words
from workers import Worker

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEERS = ("ort_models", "llama_cpp", "torch_hf")
# A side whose logits differ by more computes another model; in bf16 peers round what passes between layers as well.
ERROR_LIMIT = {"float32": 2e-3, "bf16": 0.2}
EXACT = "isomer_float32"  # Isomer once more: weights in bf16, multiplied in float32
ROUND_SECONDS = 1.0  # a round repeats a case for about as long


def arguments():
    parser = argparse.ArgumentParser(prog="bench/models", description=__doc__)
    parser.add_argument("--threads", type=numbers, default=[1, 2], help="for example 1,2")
    parser.add_argument("--models", type=words, default=list(models_cases.MODELS), help=f"of {','.join(models_cases.MODELS)}")
    parser.add_argument("--weights", type=words, default=list(models_cases.WEIGHTS), help=f"of {','.join(models_cases.WEIGHTS)}")
    parser.add_argument("--prompts", type=numbers, help="these lengths, for example 512,2048")
    parser.add_argument("--peers", type=words, default=list(PEERS if os.environ.get("PEERS") == "all" else PEERS[:2]),
                        help=f"of {','.join(PEERS)}; none: an empty text")
    parser.add_argument("--rounds", type=int, default=5, help="[5]")
    parser.add_argument("--quick", action="store_true", help="prompts of 512, two rounds")
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    parser.add_argument("--isomer", default=str(ROOT / "build" / "isomer"), metavar="PROGRAM")
    parser.add_argument("--npm", default=str(ROOT / "build" / "bench-npm"), metavar="FOLDER", help="where bench/setup put llama.cpp")
    parser.add_argument("--files", type=pathlib.Path, default=ROOT / "build" / "bench-models", metavar="FOLDER",
                        help="where weights are kept in every form")
    options = parser.parse_args()
    for given, known in ((options.models, models_cases.MODELS), (options.weights, models_cases.WEIGHTS), (options.peers, PEERS)):
        if unknown := set(given) - set(known):
            parser.error(f"expected some of {', '.join(known)}, got {', '.join(sorted(unknown))}")
    if options.quick:
        options.prompts, options.rounds = options.prompts or [512], 2
    return options


class Bench:
    """Each case has new processes, so that the most memory they took is the case's."""

    def __init__(self, options):
        self.options = options
        environment = {"ISOMER": os.path.abspath(options.isomer), "ISOMER_BENCH_NPM": os.path.abspath(options.npm)}
        self.workers = {name: Worker(name, environment) for name in ("isomer", *options.peers)} | {EXACT: Worker("isomer", environment)}

    def about(self):
        found = {name: worker.ask(op="about") for name, worker in self.workers.items() if name != EXACT}
        self.close()
        return found

    def close(self):
        for worker in self.workers.values():
            worker.close()

    def sides(self, case):
        return [name for name in self.workers if name != EXACT or case["weights"] == "bf16"]

    def request(self, case, side, repeat=1):
        folder = model_files.folder(case["name"], case["weights"], self.options.files)
        files = {"gguf": str(model_files.gguf(folder))} if case["kind"] == "language" and "llama_cpp" in self.workers else {}
        given = case | {"model": str(folder), "files": files} | {"compute": "float32" if side == EXACT else case["weights"]}
        return {"op": "model", "case": given, "prompt": models_cases.prompt(case), "tokens": models_cases.TOKENS, "repeat": repeat}

    def case(self, case):
        """{side: Timing}, Isomer first."""
        for side in self.sides(case):
            self.workers[side].ask(op="about")  # imports its libraries
        timings = {side: Timing(self.workers[side].ask(**self.request(case, side))) for side in self.sides(case)}
        ours, exact = timings["isomer"], timings.get(EXACT, timings["isomer"])
        for name, timing in timings.items():
            if not timing.skip and not exact.skip and timing is not exact:
                timing.skip = difference(case, timing.first, exact.first)
        # All repeat as often, so that a round is as long for the fastest.
        alone = [sum(t.first["prefill"]) + sum(t.first["decode"]) for t in timings.values() if not t.skip]
        repeat = max(1, round(ROUND_SECONDS / min(alone))) if alone else 1
        for _ in range(0 if ours.skip else self.options.rounds):
            self.round(case, repeat, timings)
        self.close()
        return timings

    def round(self, case, repeat, timings):
        for name, timing in timings.items():
            if not timing.skip:
                timing.add(self.workers[name].ask(**self.request(case, name, repeat)))
        if (count := timings["isomer"].first["bytes"]) > 0:
            read = self.workers["isomer"].ask(op="read", threads=case["threads"], bytes=count)
            timings["isomer"].reads.append(1e9 * read["gb_per_s"])


def difference(case, theirs, ours):
    """Why two sides do not compute the same; None if they do."""
    found = models_report.error(theirs, ours)
    return None if found <= ERROR_LIMIT[case["weights"]] else f"computes something else: logits differ by {found:.1e}"


def main():
    options = arguments()
    bench = Bench(options)
    table = models_report.Table(bench.about())
    plan = models_cases.suite(options.models, options.weights, options.prompts, options.threads)
    try:
        for number, case in enumerate(plan, 1):
            progress(f"[{number}/{len(plan)}] {models_cases.name(case)}, threads {case['threads']}")
            table.add(case, bench.case(case))
    finally:
        progress("")
        bench.close()
    table.finish()
    if options.json:
        table.write_json(options.json)
    return 0 if table.complete else 1


if __name__ == "__main__":
    sys.exit(main())
