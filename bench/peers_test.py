"""Every form of every installed peer against the float64 law, gradients against its differences.

    build/bench-venv/bin/python bench/peers_test.py
"""

import importlib
import itertools
import os
import pathlib
import tempfile
import unittest

import numpy as np

import cases
import targets
import workers
from peers import laws, worker

os.environ.setdefault("ISOMER_BENCH_NPM", str(pathlib.Path(__file__).parents[1] / "build" / "bench-npm"))
PEERS = ("ort", "ggml", "torch_cpu")
VARIANTS = [("attention", "window"), *((law, variant) for law, variants in cases.VARIANTS.items() for variant in variants)]
# ggml's Mamba-2 scan gets its step through a softplus in float, the others are at a few epsilon.
LIMIT = 3e-5
GRADIENT_LIMIT = 2e-4


def case(subject, variant, direction, **sizes):
    T = 1 if direction == "step" else 256
    return cases.case(subject, variant, direction, T, 64, 1) | {"B": 2, "H": 3, "S": 75, "window": 32} | sizes


def load(peer):
    try:
        return importlib.import_module(f"peers.{peer}")
    except ImportError as problem:
        raise unittest.SkipTest(f"{peer}: {problem}") from problem


def forms(peer, c, x):
    try:
        return load(peer).prepare(c, x)
    except worker.Skip:
        return []


def difference(c, x, name, direction, size):
    """Derivative of the sum of outputs times their gradients along a direction, from the float64 law."""
    def objective(sign):
        moved = {n: a.astype(np.float64) for n, a in x.items()}
        moved[name] = moved[name] + sign * size * direction
        return float(sum((out * x["grad_" + n]).sum() for n, out in laws.reference(c, moved).items()))
    return (objective(1) - objective(-1)) / (2 * size)


class Peers(unittest.TestCase):
    def test_outputs(self):
        for peer, (subject, variant), direction, threads in itertools.product(PEERS, VARIANTS, ("forward", "step"), (1, 2)):
            if (variant, direction) == ("window", "step"):
                continue
            with self.subTest(peer=peer, variant=variant, direction=direction, threads=threads):
                c = case(subject, variant, direction, threads=threads)
                x = laws.inputs(c)
                want = laws.reference(c, x)
                for form in forms(peer, c, x):
                    form.run()
                    got = form.result()
                    for name, array in want.items():
                        self.assertLess(laws.error(got[name], array), LIMIT, form.name)

    def test_gradients(self):
        for subject, variant in VARIANTS:
            c = case(subject, variant, "forward+backward", B=1, H=2)
            x = laws.inputs(c)
            want = laws.reference(c, x)
            for form in forms("torch_cpu", c, x):
                with self.subTest(variant=variant, form=form.name):
                    form.run()
                    got = form.result()
                    if form.caveat:
                        continue
                    for name, array in want.items():
                        self.assertLess(laws.error(got[name], array), LIMIT)
                    # A fixed decay is a constant of the model.
                    inputs = {n for n in x if not n.startswith("grad_") and (variant, n) != ("fixed", "log_decay")}
                    self.assertEqual({n for n in got if n.startswith("grad_")}, {"grad_" + n for n in inputs})
                    for name in inputs:
                        self.check_gradient(c, x, name, got["grad_" + name])

    def check_gradient(self, c, x, name, gradient):
        # Along the gradient itself the derivative is its norm, so nothing cancels.
        direction = gradient.astype(np.float64) / np.linalg.norm(gradient)
        want = difference(c, x, name, direction, 1e-4)
        self.assertLess(abs(float((gradient * direction).sum()) / want - 1), GRADIENT_LIMIT, name)

    def test_every_peer_of_a_target_computes_it(self):
        for (subject, variant), peers in targets.RATIO.items():
            for peer, limits in peers.items():
                for direction in (d for d, limit in zip(cases.DIRECTIONS, limits) if limit is not None):
                    with self.subTest(peer=peer, variant=variant, direction=direction):
                        c = case(subject, variant, direction, T=128)
                        self.assertTrue(forms(peer, c, laws.inputs(c)))

    def test_cases_can_be_chosen(self):
        quick = cases.suite(1, quick=True)
        self.assertEqual({c["subject"] for c in quick}, set(cases.VARIANTS))
        self.assertEqual({c["T"] for c in quick}, {1, 2048})
        some = cases.chosen(cases.suite(1, lengths=[512, 1024]), subject=["delta"], variant=["kda"], direction=None)
        self.assertEqual({(c["variant"], c["T"], c["K"]) for c in some}, {("kda", T, K) for T in (512, 1024) for K in (64, 128)})
        self.assertEqual({c["V"] for c in cases.suite(1) if c["variant"] == "s6"}, {cases.STATE})
        self.assertEqual({c["K"] for c in cases.suite(1, quick=True, sizes=[128])}, {128})

    def test_own_cases_are_compared_with_their_own_kind(self):
        both = case("delta", "gated", "forward+backward", H=1, threads=2)
        self.assertEqual(list(targets.others(both).values()), [both | {"direction": "forward"}, both | {"threads": 1}])
        self.assertEqual(targets.others(case("delta", "gated", "forward")), {})
        self.assertEqual(targets.judge(both, "backward / forward", 0.25), (3.0, "<= 3.0", True))
        self.assertEqual(targets.judge(both, "two threads against one", 1.5), (1.5, ">= 1.7", False))

    def test_ratio_at_the_peak(self):
        c = case("delta", "gated", "forward", B=1, T=1000, H=1)
        # 6·64·64 flops a token at 24.576 GFLOP/s are a microsecond, and 3 were measured.
        flops = 6 * 64 * 64 * 1000
        self.assertAlmostEqual(targets.at_peak(c, 1.2, 3e-3, flops, 24.576), 3.6)
        self.assertIsNone(targets.at_peak(c | {"direction": "forward+backward"}, 1.2, 3e-3, flops, 24.576))
        self.assertIsNone(targets.at_peak(case("attention", "causal", "forward"), 1.2, 3e-3, flops, 24.576))
        self.assertIsNone(targets.at_peak(c, 1.2, 3e-3, flops, None))

    def test_worker_answers_with_a_reason(self):
        server = worker.Server("ort", load("ort").prepare, lambda: "")
        with self.assertRaisesRegex(worker.Skip, "no gradient"):
            server.answer({"op": "time", "case": case("attention", "causal", "forward+backward"), "repeat": 1})
        answer = server.answer({"op": "time", "case": case("attention", "causal", "forward"), "repeat": 3})
        self.assertEqual(len(answer["seconds"]), 3)

    def test_safetensors_round_trip(self):
        isomer = load("isomer")
        tensors = {"q": np.arange(6, dtype=np.float32).reshape(1, 2, 3), "offsets": np.array([0, 2]), "empty": np.zeros((0, 3))}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.safetensors")
            isomer.write_safetensors(path, tensors)
            back = isomer.read_safetensors(path)
        self.assertEqual(list(back), list(tensors))
        for name, array in tensors.items():
            np.testing.assert_array_equal(back[name], array)

    def test_a_worker_that_ends_is_a_reason_and_can_be_asked_again(self):
        worker_process = workers.Worker("no_such_peer", {})
        for _ in range(2):
            self.assertIn("no_such_peer", worker_process.ask(op="about")["skip"])
        worker_process.close()


if __name__ == "__main__":
    unittest.main()
