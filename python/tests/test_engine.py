"""The engine from Python: tables, training, models, streams, systems."""
import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import formulas
import numpy as np
import pytest

import isomer
from isomer._arrays import numpy_empty

RECIPE = """
[model]
layers = "gla*1"
width = 16
[task]
name = "induction"
length = 16
vocabulary = 8
[train]
steps = 6
batch = 4
eval_every = 3
eval_examples = 8
log_every = 1
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engine")
    (folder / "small.toml").write_text(RECIPE)
    lines = []
    made = isomer.train(folder / "small.toml", {"train.lr": 1e-3}, out=folder / "run", callback=lines.append)
    assert [line["step"] for line in lines if "loss" in line and "eval" not in line][-1] == 6
    assert lines == made.metrics
    return made


def rows(table):
    return table if isinstance(table, list) else table.to_dict("records")


def test_tables():
    names = {row["preset"] for row in rows(isomer.list())}
    assert {"softmax", "gla", "mlstm"} <= names
    assert all(row["pass"] for row in rows(isomer.check("scan")))
    assert "gla" in isomer.show("gla", {"heads": 2}, width=32)


def test_errors_of_the_caller(tmp_path):
    with pytest.raises(ValueError, match="did you mean gla"):
        isomer.show("glaa")
    with pytest.raises(ValueError, match="expected"):
        isomer.load(tmp_path / "none")
    with pytest.raises(ValueError, match="float32 or bf16"):
        isomer.load(tmp_path, weights="int8")
    (tmp_path / "bad.toml").write_text("[model]\nlayer = 'gla'\n")
    with pytest.raises(ValueError, match="layers"):
        isomer.train(tmp_path / "bad.toml", out=tmp_path / "run")


def test_logits_and_streams_agree(run, tmp_path):
    model = run.load()
    tokens = np.random.default_rng(1).integers(0, model.vocabulary, (3, 12))
    logits = model.logits(tokens)
    assert logits.shape == (3, 12, model.vocabulary) and logits.dtype == np.float32
    state = model.start(3)
    assert np.allclose(state.prefill(tokens[:, :5]), logits[:, 4], atol=1e-5)
    fork = state.copy()
    for t in range(5, 12):
        assert np.allclose(state.step(tokens[:, t]), logits[:, t], atol=1e-5)
    assert state.positions == [12, 12, 12] and fork.positions == [5, 5, 5]
    fork.save(tmp_path / "state.safetensors")
    again = model.load_state(tmp_path / "state.safetensors")
    assert np.array_equal(again.step(tokens[:, 5]), fork.step(tokens[:, 5]))
    other = isomer.train(run.path.parent / "small.toml", {"train.steps": 2}, out=tmp_path / "other").load()
    with pytest.raises(ValueError, match="cannot load"):
        other.load_state(tmp_path / "state.safetensors")


def test_states_are_copied_and_pickled(run):
    model = run.load()
    state = model.start(2)
    state.prefill(np.array([[1, 2, 3], [4, 5, 6]]))
    others = [copy.copy(state), copy.deepcopy(state), pickle.loads(pickle.dumps(state))]
    want = state.step([1, 2])
    for other in others:
        assert other.positions == [3, 3] and np.array_equal(other.step([1, 2]), want)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.logits([[1, 2]]), model.logits([[1, 2]]))


def test_what_things_say(run):
    model = run.load()
    assert repr(model) == f"<isomer.Model {run.path}: language, 1 x gla, width 16, vocabulary {model.vocabulary}>"
    state = model.start(2)
    assert repr(state) == f"<isomer.State of {run.path}: 2 sequences after 0 tokens, {state.bytes} bytes>"
    state.prefill([[1], [2]])
    assert "2 sequences after 1 tokens" in repr(state) and repr(model.start()).count("1 sequence after 0 tokens") == 1


def test_a_run_is_a_path(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(run.path.parent))
    assert isomer.load(f"~/{run.path.name}").path == str(run.path)
    assert os.fspath(run) == str(run.path)
    assert np.array_equal(isomer.load(run).logits([[1, 2]]), run.load().logits([[1, 2]]))
    converted = isomer.convert(run, "linear-relu", tmp_path / "converted", "--transfer", "0", "--tune", "2", "--examples", "8")
    assert converted.load().layers == ["linear-relu"]
    assert any("run" in str(row) for row in rows(isomer.runs(run.path.parent)))


def test_bench_and_study(tmp_path):
    table = rows(isomer.bench("scan", threads=1))
    assert {row["subject"] for row in table} == {"scan"} and all(row["us_per_token"] > 0 for row in table)
    claim, = rows(isomer.study("softmax-rnn.recurrence", out=tmp_path))
    assert claim["id"] == "softmax-rnn.recurrence" and claim["verdict"] == "holds"
    assert json.loads((tmp_path / "softmax-rnn.recurrence.json").read_text())["verdict"] == "holds"


def test_claims_and_other_times():
    known = rows(isomer.claims())
    assert {"id", "source", "statement", "rule"} <= known[0].keys() and "softmax-rnn.recurrence" in {claim["id"] for claim in known}
    times = rows(isomer.bench(preset="linear-relu", layers=True, threads=1))
    assert times and {row["subject"] for row in times} == {"linear-relu"}
    with pytest.raises(ValueError, match="--law"):
        isomer.bench("scan", layers=True)


def test_a_folder_with_a_run_is_refused_before_anything_is_said(run):
    said, before = [], run.metrics
    with pytest.raises(ValueError, match="expected a folder without a run"):
        isomer.train(run.path.parent / "small.toml", out=run.path, callback=said.append)
    assert said == [] and run.metrics == before


def test_the_bar_has_an_end_and_a_loss(tmp_path):
    pytest.importorskip("tqdm")
    (tmp_path / "small.toml").write_text(RECIPE)
    code = f"import isomer; isomer.train({str(tmp_path / 'small.toml')!r}, out={str(tmp_path / 'run')!r})"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split("\r")[-1]
    assert "6/6" in shown and "loss=" in shown and "None" not in shown


def test_gradients_of_a_model(run):
    model = run.load()
    tokens = np.arange(16).reshape(1, 16) % model.vocabulary
    out = model.run({"tokens": tokens, "targets": tokens}, gradients=True)
    assert out["loss"].shape == (1,) and np.isfinite(out["loss"]).all()
    assert any(name.startswith("grad.layers.0.mixer") and np.abs(x).max() > 0 for name, x in out.items())


def test_generate_is_the_programs(run):
    want = subprocess.run([isomer.program(), "generate", run.path, "--prompt", "1 2 3", "--tokens", "9", "--seed", "4"],
                          capture_output=True, text=True, check=True).stdout.split()
    assert run.load().generate("1 2 3", 9, seed=4).split() == want[-9:]


def test_refused_tokens(run):
    model = run.load()
    for tokens, text in (([[99]], "expected numbers from 0"), ([[0.5]], "expected"), (np.zeros((2, 2), np.float32), "expected integers"),
                         (np.zeros((1, 0), np.int64), "expected \\[B, T\\]")):
        with pytest.raises(ValueError, match=text):
            model.start().prefill(tokens)
    for call in (lambda: model.logits([[0.5, 1.0]]), lambda: model.logits(np.zeros((1, 2))), lambda: model.start().step([0.5])):
        with pytest.raises(ValueError, match="tokens: expected integers, got float64"):
            call()
    assert np.array_equal(model.logits(np.array([[1, 2]], np.uint8)), model.logits([[1, 2]]))


GOLDENS = Path(__file__).parents[2] / "tests" / "goldens"


@pytest.mark.parametrize("path, prompt", [("foreign/llama", "3 4 5"), ("foreign/mamba", "3 4 5"), ("gguf/llama.gguf", "a")])
def test_models_of_others(path, prompt, tmp_path):
    """Folders of Hugging Face and GGUF files: logits, streams, states, and what the program says."""
    model = isomer.load(GOLDENS / path)
    tokens = np.arange(8)[None] % model.vocabulary
    logits = model.logits(tokens)
    state = model.start()
    state.prefill(tokens[:, :5])
    assert np.allclose(state.step(tokens[:, 5]), logits[:, 5], atol=1e-4)
    state.save(tmp_path / "state")
    again = model.load_state(tmp_path / "state")
    assert np.array_equal(again.step(tokens[:, 6]), state.step(tokens[:, 6])) and again.positions == [7]
    said = subprocess.run([isomer.program(), "run", GOLDENS / path, "--prompt", prompt, "--tokens", "6", "--temperature", "0", "--json"],
                          capture_output=True, text=True, check=True).stdout
    row = json.loads(said)["rows"][0]
    assert list(model.stream(prompt, 6, temperature=0)) == row["tokens"]
    assert model.generate(prompt, 6, temperature=0).endswith(row["text"])


def test_logits_of_transformers():
    expected = isomer._engine.read_tensors(str(GOLDENS / "foreign" / "llama" / "expected.safetensors"), numpy_empty)
    model = isomer.load(GOLDENS / "foreign" / "llama")
    assert np.allclose(model.logits(expected["tokens"]), expected["logits"], atol=1e-4)
    made = model.run({"tokens": expected["tokens"], "targets": expected["targets"]}, gradients=True)
    name = next(name for name in expected if name.startswith("grad."))
    assert np.allclose(made["loss"], expected["loss"], atol=1e-4) and np.allclose(made[name], expected[name], rtol=1e-3, atol=1e-4)


def test_encoder_of_sounds():
    with pytest.warns(UserWarning, match="whisper: the decoder is left out: 28 weights below model.decoder."):
        model = isomer.load(GOLDENS / "foreign" / "whisper")
    expected = isomer._engine.read_tensors(str(GOLDENS / "foreign" / "whisper" / "expected.safetensors"), numpy_empty)
    made = model.run({"inputs": expected["inputs"]})
    assert np.allclose(made["hidden"], expected["hidden"], atol=1e-4)
    with pytest.raises(ValueError, match="expected a model of tokens, got one of vectors"):
        model.embed(["a"])


def test_embeddings():
    model = isomer.load(GOLDENS / "foreign" / "bert-encoder")
    vectors = model.embed(["3 4", "3 4 5 6", "3 4"])
    assert vectors.shape == (3, model.width) and np.allclose((vectors**2).sum(1), 1, atol=1e-5)
    said = subprocess.run([isomer.program(), "run", model.path, "--prompt", "3 4", "--prompt", "3 4 5 6", "--json"], capture_output=True,
                          text=True, check=True).stdout
    assert abs(vectors[0] @ vectors[1] - json.loads(said)["rows"][0]["cosine"]) < 1e-5 and np.array_equal(vectors[0], vectors[2])
    assert model.embed([]).shape == (0, model.width)
    for call, text in ((lambda: model.generate("3 4"), "expected a language model, got one of the kind embedding"),
                       (lambda: model.embed("3 4"), "expected a list of texts"),
                       (lambda: model.embed(["3", 4]), "expected a list of texts, got one with 4"),
                       (lambda: isomer.load(GOLDENS / "foreign" / "llama").embed(["3"]), "expected an encoder of texts, got one of the kind language"),
                       (lambda: isomer.load(GOLDENS / "foreign" / "llama").generate("3", chat=True), "taught conversations")):
        with pytest.raises(ValueError, match=text):
            call()


def test_mistakes_are_said_in_one_line():
    model, tokens = isomer.load(GOLDENS / "foreign" / "llama"), np.array([[1, 2, 3]])
    for call, text in ((lambda: isomer.apply("delta", {1: tokens}), "apply: expected tensors by name, got 1"),
                       (lambda: isomer.apply("delta", {}, {1: 2}), "apply: expected options by name, got 1"),
                       (lambda: isomer.apply("delta", [tokens]), "apply: expected a dictionary of tensors, got list"),
                       (lambda: isomer.dsf("delta", {1: tokens}), "dsf: expected tensors by name, got 1"),
                       (lambda: model.run(tokens), "run: expected a dictionary of tensors, got ndarray"),
                       (lambda: model.run({1: tokens}), "run: expected tensors by name, got 1"),
                       (lambda: model.start("one"), "start: batch: expected a whole number from 0 to 2147483648, got 'one'"),
                       (lambda: model.start(0), "state: expected at least one sequence, got 0"),
                       (lambda: model.generate([1, 2]), "generate: expected a text, got list"),
                       (lambda: model.generate("1 2", -1), "generate: tokens: expected a whole number from 0 to 9007199254740992, got -1")):
        with pytest.raises(ValueError) as said:
            call()
        assert str(said.value) == text
    # Whole numbers of any type are tokens, and so are those that say which text one belongs to.
    bert = isomer.load(GOLDENS / "foreign" / "bert")
    kinds = np.array([[0, 1, 1]])
    assert np.array_equal(bert.run({"tokens": tokens, "types": kinds.astype(np.int8)})["logits"], bert.run({"tokens": tokens, "types": kinds})["logits"])


def test_saved_model_needs_no_run(run, tmp_path):
    model = run.load()
    model.save(tmp_path / "model")
    tokens = np.array([[1, 2, 3]])
    assert np.array_equal(isomer.load(tmp_path / "model").logits(tokens), model.logits(tokens))


def test_a_callback_ends_the_run(run, tmp_path):
    class Enough(Exception):
        pass

    def stop(line):
        raise Enough

    (tmp_path / "small.toml").write_text(RECIPE)
    with pytest.raises(Enough):
        isomer.train(tmp_path / "small.toml", {"train.steps": 100000}, out=tmp_path / "run", callback=stop)
    assert (tmp_path / "run" / "checkpoints" / "latest").exists()


def test_ctrl_c_ends_the_run_soon(tmp_path):
    (tmp_path / "small.toml").write_text(RECIPE)
    code = f"import isomer; isomer.train({str(tmp_path / 'small.toml')!r}, {{'train.steps': 1000000}}, out={str(tmp_path / 'run')!r})"
    child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not (tmp_path / "run" / "metrics.jsonl").exists():
        assert child.poll() is None
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)
    assert "KeyboardInterrupt" in child.communicate(timeout=20)[1]
    state = json.loads((tmp_path / "run" / "checkpoints" / "latest" / "state.json").read_text())
    assert state["step"] > 0


def test_system_of_a_law():
    rng = np.random.default_rng(3)
    q, k, v = rng.standard_normal((3, 1, 9, 1, 4))
    beta, decay = rng.uniform(0.1, 0.9, (1, 9, 1)), -rng.exponential(0.3, (1, 9, 1))
    system = isomer.dsf("delta", {"q": q, "k": k, "v": v, "beta": beta, "log_decay": decay}, {"l2norm": True})
    o, _ = formulas.delta(q, k, v, beta, decay, l2norm=True)
    assert np.allclose(system.matrix[0] @ v[0, :, 0], o[0, :, 0], atol=1e-12)
    h = np.zeros((4, 4))
    for t in range(9):
        h = system.transition(t) @ h + np.outer(system.B[t, 0], v[0, t, 0])
        assert np.allclose(system.C[t, 0] @ h + system.D[t, 0] * v[0, t, 0], o[0, t, 0], atol=1e-12)
    assert np.abs(system.eigenvalues(3)).max() <= 1 + 1e-12


def test_long_systems_draw_themselves():
    system = isomer.dsf("scalar_decay", {name: np.ones((1, 300, 1, 2)) for name in "qkv"}, {"normaliser": "none"})
    page = system._repr_html_()
    assert "300 tokens" in page and page.count("<rect") == 96 * 97 // 2


def test_systems_of_a_preset():
    x = np.random.default_rng(1).standard_normal((7, 16))
    systems = isomer.dsf("gla", x, {"heads": 2})
    assert [system.head for system in systems] == [0, 1] and systems[0].matrix.shape == (1, 7, 7)
    assert repr(systems[1]).startswith("<isomer.System of channel_decay, head 1: 7 tokens, state of 4 x 8, remembered for ")
    assert systems._repr_html_() == systems[0]._repr_html_() + systems[1]._repr_html_()
    with pytest.raises(ValueError, match="expected x of shape"):
        isomer.dsf("gla", x[0])


def test_a_run_draws_itself(run):
    assert "<svg" in run._repr_html_() and str(run.path) in run._repr_html_()


@pytest.mark.parametrize("example, arguments", [("forget", []), ("attention_maps", []), ("train_and_stream", ["4"])])
def test_examples(example, arguments):
    path = os.path.join(os.path.dirname(__file__), "..", "examples", example + ".py")
    assert len(open(path).read().splitlines()) < 60
    out = subprocess.run([sys.executable, path, *arguments], capture_output=True, text=True)
    assert out.returncode == 0 and out.stdout, out.stderr
