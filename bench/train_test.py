"""The models of peers/torch_models.py against Isomer's: every form trains alike, and streams the same tokens.

    build/bench-venv/bin/python bench/train_test.py
"""

import contextlib
import io
import os
import pathlib
import tempfile
import unittest

import train
import train_cases
import train_report
import workers
from peers import torch_models, torch_train

os.environ.setdefault("ISOMER", str(pathlib.Path(__file__).resolve().parents[1] / "build" / "isomer"))
SMALL = {"layers": 2, "width": 64, "vocabulary": 128, "threads": 1}
LIMIT = 2e-5


class Models(unittest.TestCase):
    def setUp(self):
        self.isomer = workers.Worker("isomer", {})
        self.addCleanup(self.isomer.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "weights.safetensors")

    def isomer_answer(self, op, case, repeat):
        answer = self.isomer.ask(op=op, case=case, repeat=repeat, save=self.path)
        self.assertNotIn("skip", answer)
        return answer

    def test_every_form_trains_alike(self):
        self.assertEqual(set(torch_models.MIXERS), set(train_cases.RATIO))
        for preset in torch_models.MIXERS:
            case = SMALL | {"preset": preset, "B": 2, "T": 256}
            ours = self.isomer_answer("train", case, 4)
            forms = torch_train.load(case, self.path, 256)[0].blocks[0].mixer.forms(256)
            for name in forms:
                found = torch_train.Training(case | {"mode": "eager"}, self.path, name).answer(4)
                self.assertEqual(found["parameters"], ours["parameters"])
                # Where a gradient is not whole the first loss alone is the same.
                count = 1 if name.startswith("native_custbw") else 4
                for got, want in zip(found["losses"][:count], ours["losses"]):
                    self.assertLess(abs(got / want - 1), LIMIT, f"{preset} {name}")

    def test_streams_the_same_tokens(self):
        for preset in train_cases.STREAM_PRESETS:
            case = SMALL | {"preset": preset, "prompt": 9, "tokens": 12, "weights": "float32"}
            ours = self.isomer_answer("generate", case, 12)
            generation = torch_train.Generation(case | {"mode": "eager"}, self.path)
            for _ in range(2):
                self.assertEqual(generation.answer(12)["tokens"], ours["tokens"])

    def test_another_model_is_not_timed(self):
        case = train_cases.training("gla", (16, 512), 1)
        same = {"parameters": 3, "losses": [9.0, 8.0]}
        self.assertIsNone(train.difference(case, same | {"losses": [9.0001]}, same))
        self.assertIn("a loss of 9.01", train.difference(case, same | {"losses": [9.01]}, same))
        self.assertIn("a loss of nan", train.difference(case, same | {"losses": [float("nan")]}, same))
        self.assertIn("4 parameters", train.difference(case, same | {"parameters": 4}, same))
        stream = train_cases.streaming("gla", "float32", 1)
        self.assertIn("first token", train.difference(stream, {"tokens": [2, 1]}, {"tokens": [1, 1]}))

    def test_the_better_mode_and_peak_count(self):
        ours, eager, compiled = (train_report.Timing({"parameters": 10**6, "law_flops_per_token": 0}) for _ in range(3))
        for timing, seconds in ((ours, 1.0), (eager, 2.0), (compiled, 1.5)):
            for _ in range(2):
                timing.add({"seconds": [seconds], "peak_mib": 100})
        ours.limits = [{"isomer": 6e10, "torch": 5e10}, {"isomer": 5e10, "torch": 6e10}]
        with contextlib.redirect_stdout(io.StringIO()) as text:
            table = train_report.Table({}, ["eager", "compiled"])
            table.train(train_cases.training("gla", (16, 512), 1), {"isomer": ours, "eager": eager, "compiled": compiled})
        rows = {row["peer"]: row for row in table.rows}
        self.assertAlmostEqual(rows["torch eager"]["share"], 8192 * 6e6 / 6e10)
        self.assertEqual((rows["torch compiled"]["ratio"], rows["torch compiled"]["met"]), (1.5, True))
        self.assertNotIn("met", rows["torch eager"])
        self.assertIn("1.50x (>=1.4 ok)", text.getvalue())


if __name__ == "__main__":
    unittest.main()
