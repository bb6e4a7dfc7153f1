"""bench/models on a tiny model: every side says the same, files are the same numbers, and the table judges what it should.

    build/bench-venv/bin/python bench/models_test.py
"""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import tempfile
import unittest

import numpy as np

import model_files
import models
import models_cases
import models_report
from workers import Worker

ROOT = pathlib.Path(__file__).resolve().parents[1]
ENVIRONMENT = {"ISOMER": os.environ.get("ISOMER", str(ROOT / "build" / "isomer")),
               "ISOMER_BENCH_NPM": os.environ.get("ISOMER_BENCH_NPM", str(ROOT / "build" / "bench-npm"))}
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 128, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
         "rope_theta": 10000.0, "tie_word_embeddings": True, "hidden_act": "silu"}


def llama(folder, weights):
    draw = np.random.default_rng(1)
    width, inner, size = LLAMA["hidden_size"], LLAMA["intermediate_size"], LLAMA["hidden_size"] // LLAMA["num_attention_heads"]
    shapes = {"model.embed_tokens.weight": (LLAMA["vocab_size"], width), "model.norm.weight": (width,)}
    for i in range(LLAMA["num_hidden_layers"]):
        at = f"model.layers.{i}."
        shapes |= {at + "input_layernorm.weight": (width,), at + "post_attention_layernorm.weight": (width,),
                   at + "self_attn.q_proj.weight": (width, width), at + "self_attn.o_proj.weight": (width, width),
                   at + "self_attn.k_proj.weight": (2 * size, width), at + "self_attn.v_proj.weight": (2 * size, width),
                   at + "mlp.gate_proj.weight": (inner, width), at + "mlp.up_proj.weight": (inner, width),
                   at + "mlp.down_proj.weight": (width, inner)}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    model_files.write(folder / "model.safetensors", {
        name: model_files.in_type(draw.normal(1, 0.1, shape) if len(shape) == 1 else draw.normal(0, shape[1] ** -0.5, shape), weights)
        for name, shape in shapes.items()})
    return folder


class Sides(unittest.TestCase):
    def test_every_side_says_the_same(self):
        peers = [name for name in models.PEERS if name != "torch_hf" or importlib.util.find_spec("transformers")]
        for weights in models_cases.WEIGHTS:
            with tempfile.TemporaryDirectory() as top:
                folder = llama(pathlib.Path(top) / "tiny", weights)
                case = {"kind": "language", "weights": weights, "threads": 1, "room": 64, "model": str(folder),
                        "files": {"gguf": str(model_files.gguf(folder))}}
                request = {"op": "model", "case": case, "prompt": list(range(3, 40)), "tokens": 5, "repeat": 2}
                answers = {}
                for name in ("isomer", models.EXACT, *peers):
                    worker = Worker("isomer" if name == models.EXACT else name, ENVIRONMENT)
                    self.addCleanup(worker.close)
                    given = case | {"compute": "float32" if name == models.EXACT else weights}
                    answers[name] = worker.ask(**request | {"case": given})
            if weights == "bf16":
                self.assertIn("no bfloat16", answers.pop("ort_models")["skip"])
            for name, answer in answers.items():
                with self.subTest(side=name, weights=weights):
                    self.assertNotIn("skip", answer)
                    self.assertEqual((len(answer["prefill"]), len(answer["decode"]), len(answer["next"])), (2, 10, 6))
                    self.assertLess(models_report.error(answer, answers[models.EXACT]), 2e-3 if weights == "float32" else 0.05)
                    if weights == "float32":
                        self.assertEqual(answer["next"], answers["isomer"]["next"])


class Files(unittest.TestCase):
    def test_rounding_is_to_nearest_even(self):
        for number, bits in ((1.0, 0x3F80), (1 + 2**-8, 0x3F80), (1 + 3 * 2**-8, 0x3F82), (1 + 2**-8 + 2**-20, 0x3F81), (-1.0, 0xBF80)):
            self.assertEqual(int(model_files.rounded(np.array([number]))[0]), bits)
        numbers = np.arange(65536, dtype=np.uint16)
        finite = numbers[(numbers & 0x7F80) != 0x7F80]
        np.testing.assert_array_equal(model_files.rounded(model_files.widened(finite)), finite)

    def test_a_folder_is_read_as_it_was_written(self):
        with tempfile.TemporaryDirectory() as top:
            tensors = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.arange(4, dtype=np.uint16)}
            model_files.write(pathlib.Path(top) / "model.safetensors", tensors)
            back = model_files.read(top)
            self.assertEqual(list(back), ["a", "b"])
            for name, array in tensors.items():
                np.testing.assert_array_equal(back[name], array)

    def test_what_cannot_be_made_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as top:
            with self.assertRaises(ZeroDivisionError):
                model_files.made(pathlib.Path(top) / "a", lambda path: (path.write_text("half"), 1 / 0))
            self.assertEqual(os.listdir(top), [])


class Report(unittest.TestCase):
    def answer(self, scale, **more):
        return {"load": 0.1, "first": 0.5 * scale, "prefill": [1.0 * scale, 1.2 * scale], "decode": [0.01 * scale], "peak_mib": 10,
                "logits": [1.0, -2.0], "bytes": 10**8} | more

    def test_judges_ratios_shares_and_seconds(self):
        case = models_cases.case("smollm2-135m", "bf16", 128, 1)
        timings = {"isomer": models_report.Timing(self.answer(1)), "torch_hf": models_report.Timing(self.answer(1.2, logits=[1.0, -2.1])),
                   "llama_cpp": models_report.Timing({"skip": "not here"})}
        for side in ("isomer", "torch_hf"):
            timings[side].add(timings[side].first)
        timings["isomer"].reads.append(1.05e10)
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            table = models_report.Table({})
            table.add(case, timings)
            table.finish()
        ours, torch, skipped = table.rows
        self.assertEqual(ours["met"], {"of_read": True, "first": True})
        self.assertAlmostEqual(ours["of_read"], 1e10 / 1.05e10)
        self.assertEqual(torch["met"], {"prefill_ratio": False})
        self.assertAlmostEqual(torch["prefill_ratio"], 1.2)
        self.assertAlmostEqual(torch["error"], 0.05)
        self.assertEqual(skipped["skip"], "not here")
        for text in ("1.20x (>=1.3 no)", "95% (>=90% ok)", "0.50 (<=1.0 ok)", "targets met: 2 of 3", "[1] llama_cpp: not here"):
            self.assertIn(text, shown.getvalue())

    def test_another_model_is_not_timed(self):
        case = models_cases.case("bert-base", "float32", 128, 1)
        self.assertIsNone(models.difference(case, self.answer(1), self.answer(1)))
        self.assertIn("computes something else", models.difference(case, self.answer(1, logits=[1.1, -2.0]), self.answer(1)))

    def test_cases_can_be_chosen(self):
        some = models_cases.suite(["bert-base"], ["bf16"], [512, 2048], [1, 2])
        self.assertEqual([(c["prompt"], c["threads"]) for c in some], [(512, 1), (512, 2)])
        self.assertEqual(len(set(models_cases.prompt(models_cases.case("smollm2-135m", "bf16", 2048, 1)))), 2048)


if __name__ == "__main__":
    unittest.main()
