"""Examples, the notebook, pictures and types."""
import json
import pathlib
import pydoc
import re
import subprocess
import sys
import textwrap

import matplotlib
import numpy as np
import pytest
import torch

import isomer
import isomer.torch

matplotlib.use("Agg")
ROOT = pathlib.Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize("example, arguments, says", [
    ("torch_layer", ["3"], "streams agree: True"), ("move_over", [], "one more token (1, 1, 4, 64)"),
    ("accelerate_model", [], "x selective scan"), ("pictures", ["{folder}/picture.png", "2"], "wrote"),
])
def test_examples(example, arguments, says, tmp_path):
    path = EXAMPLES / f"{example}.py"
    done = subprocess.run([sys.executable, path, *[word.format(folder=tmp_path) for word in arguments]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


def test_examples_are_short():
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text().splitlines()) < 60, path.name


def test_notebook():
    cells = json.loads((EXAMPLES / "tour.ipynb").read_text())["cells"]
    assert all(cell.get("id") for cell in cells)  # without which nbformat will refuse the file
    names: dict = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "tour.ipynb", "exec"), names)
    assert "<svg" in names["run"]._repr_html_() and "<svg" in names["system"]._repr_html_()
    assert all(not cell.get("outputs") for cell in cells)  # what a machine printed is not kept


def snippets():
    """Of the documents, each with a word of its own and the names that stand for what is the reader's."""
    text = (ROOT.parent / "README.md").read_text() + (ROOT.parent / "docs" / "python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    q, k, v = torch.randn(3, 1, 64, 4, 16, generator=torch.Generator().manual_seed(1)).requires_grad_()
    tokens = np.array([[5, 6, 7, 8]])
    names = [("isomer.delta", {"q": q, "k": k, "v": v, "beta": k[..., 0].sigmoid(), "g": -k[..., 0].abs()}), ("isomer.scalar_decay", {}),
             ("isomer.torch.channel_decay", {"q": q, "k": k, "v": v, "log_decay": -k.abs()}),
             ("isomer.torch.Mixer", {"x": torch.randn(1, 9, 256), "prompt": torch.randn(1, 5, 256), "token": torch.randn(1, 256)}),
             ("isomer.torch.accelerate", {}), ("isomer.load", {"tokens": tokens, "targets": tokens, "minilm": MODELS / "minilm"})]
    assert len(blocks) == len(names)
    assert all(word in block for block, (word, _) in zip(blocks, names))
    return [pytest.param(block, own, id=word) for block, (word, own) in zip(blocks, names)]


MODELS = pathlib.Path("~/.cache/isomer/models").expanduser()


@pytest.mark.parametrize("block, names", snippets())
def test_documents(block, names, tmp_path, monkeypatch):
    """What README.md and docs/python.md show runs as it stands there."""
    monkeypatch.chdir(tmp_path)
    if "isomer.load" in block and not all((MODELS / name).exists() for name in ("stories15m", "minilm")):
        pytest.skip("tools/models stories15m minilm was not run")
    if "accelerate" in block:
        transformers = pytest.importorskip("transformers")
        names = {"model": transformers.MambaForCausalLM(transformers.MambaConfig(vocab_size=64, hidden_size=32, num_hidden_layers=1))}
    exec(compile(block, "docs/python.md", "exec"), {"isomer": isomer, **names})


def test_tables_are_data_frames():
    import pandas

    table = isomer.list()
    assert isinstance(table, pandas.DataFrame) and "gla" in set(table["preset"]) and table["parameters"].dtype.kind == "i"


def test_brain_floats_of_numpy():
    """Also where NumPy has no buffer for them, as JAX has none: through DLPack."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.random.default_rng(1).standard_normal((1, 9, 2, 4)).astype(ml_dtypes.bfloat16)
    want = isomer.attention(*[x.astype(np.float32)] * 3).o
    assert np.array_equal(isomer.attention(x, x, x).o, want)
    y = pytest.importorskip("jax.numpy").asarray(x)
    assert np.array_equal(isomer.attention(y, y, y).o, want)


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_arrays_of_jax(kind):
    jnp = pytest.importorskip("jax.numpy")
    q, k, v = np.random.default_rng(1).standard_normal((3, 2, 9, 2, 4), dtype=np.float32)
    own = [jnp.asarray(x).astype(kind) for x in (q, k, v)]
    got = isomer.scalar_decay(*own, log_decay=jnp.full(2, -0.1, own[0].dtype))
    wide = [np.asarray(x.astype("float32")) for x in own]
    want = isomer.scalar_decay(*wide, log_decay=np.full(2, np.asarray(jnp.asarray(-0.1, own[0].dtype), np.float32)))
    assert np.array_equal(got.o, want.o) and np.array_equal(got.final_state, want.final_state)
    assert kind != "float32" or isomer._engine.address_of("q", own[0]) == own[0].unsafe_buffer_pointer()


def test_pictures(tmp_path):
    import matplotlib.pyplot as plt

    system = isomer.dsf("retnet", np.ones((6, 16)), {"heads": 2})
    axes = isomer.plot.attention(system)
    assert len(axes) == 2 and axes[1].get_title() == "scalar_decay, head 1"
    assert np.allclose(axes[0].images[0].get_array(), np.abs(system[0].matrix).mean(0))
    run = isomer.Run(tmp_path / "run")
    run.path.mkdir()
    (run.path / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.5}\n{"step": 2, "eval": {"accuracy": 0.5}}\n')
    ax = isomer.plot.curves(run)
    assert ax.lines[0].get_xydata().tolist() == [[1, 2.0], [2, 1.5]]
    assert isomer.plot.curves([run], "accuracy", axes=ax).lines[1].get_xydata().tolist() == [[2, 0.5]]
    with pytest.raises(ValueError, match="expected 'speed' among the metrics"):
        isomer.plot.curves(run, "speed")
    plt.close("all")


@pytest.mark.parametrize("name", ["attention", "scalar_decay", "channel_decay", "delta", "scan"])
def test_help_has_equation_and_shapes(name):
    page = pydoc.render_doc(getattr(isomer, name), renderer=pydoc.plaintext)
    assert "[B,T," in page and "_{t-1}" in page or "sum_s" in page
    for text in ("Letters: B batch", "head h reads head h // (H/G)", "form: auto", "threads:", "Result: a named tuple", "Example:"):
        assert text in page, text
    example = textwrap.dedent(getattr(isomer, name).__doc__.split("Example:\n")[1])
    exec(example, {"np": np, "isomer": isomer})
    for tensor in (x["name"] for law in isomer.laws() if law["name"] == name for x in law["inputs"]):
        assert tensor in page, tensor


USES = '''
import numpy as np
import isomer

q = np.ones((1, 2, 3, 4), np.float32)
r = isomer.delta(q, q, q, beta=q[..., 0], scale=1.0)
state: int = r.final_states
isomer.attention(q, q, q, window="wide")
isomer.load("run").start("one")
'''


def test_types(tmp_path):
    """A checker finds what is wrong in a user's file, and nothing wrong in the package."""
    folder = pathlib.Path(isomer.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_engine.pyi").exists()
    (tmp_path / "uses.py").write_text(USES)
    options = ["--ignore-missing-imports", "--follow-untyped-imports", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    own = [str(path) for path in folder.glob("*.py") if path.name not in ("_fla.py", "fla.py", "fla_delta.py", "mamba.py", "mlstm.py")]
    done = subprocess.run([sys.executable, "-m", "mypy", *options, "--follow-imports=silent", str(tmp_path / "uses.py"), *own], capture_output=True,
                          text=True, env={"MYPYPATH": str(folder.parent), "PATH": ""})
    found = [line for line in done.stdout.splitlines() if "error" in line]
    assert len(found) == 3, done.stdout + done.stderr
    for line, text in zip(found, ("final_states", '"window"', '"start"')):
        assert "uses.py" in line and text in line
