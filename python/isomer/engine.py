"""What the program does, from Python: tables of mixers, checks and times, training, studies. Each call runs the program `isomer` that
came with the package, so that Ctrl-C ends it as on a terminal and leaves nothing broken."""
import builtins
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from isomer import _engine
from isomer._arrays import text_of
from isomer.models import Model, load


def program() -> str:
    """The program's path: ISOMER_PROGRAM, the one installed with the package, or that of the build folder."""
    here = Path(_engine.__file__).resolve()
    for candidate in (os.environ.get("ISOMER_PROGRAM"), Path(sysconfig.get_path("scripts")) / "isomer", here.parents[2] / "isomer",
                      shutil.which("isomer")):
        if candidate and os.access(candidate, os.X_OK) and Path(candidate).is_file():
            return str(candidate)
    raise FileNotFoundError("isomer: the program is not there; install the package again, or set ISOMER_PROGRAM")


def _fail(status: int, errors: str):
    """Status 2 is the caller's mistake, 1 a run or a check that failed."""
    last = errors.strip().splitlines()[-1] if errors.strip() else f"ended with status {status}"
    raise (ValueError if status == 2 else RuntimeError)(last.removeprefix("isomer: "))


def _start(command, **options) -> subprocess.Popen:
    """In a session of its own: the Ctrl-C of a terminal reaches Python alone, which passes it on once. A second one would end a run
    without its checkpoint."""
    return subprocess.Popen(command, start_new_session=True, **options)


def _run(*arguments, failure_is_a_result: bool = False, patience: float | None = None) -> str:
    """What the program prints. patience: seconds after which a Ctrl-C ends it by force, where that breaks nothing."""
    command = [program(), *(os.fspath(x) if isinstance(x, os.PathLike) else str(x) for x in arguments)]
    with _start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            output, errors = child.communicate()
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(patience)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            raise
    if child.returncode != 0 and not (failure_is_a_result and child.returncode == 1 and output.strip()):
        _fail(child.returncode, errors)
    return output


def _table(*arguments, **options):
    """The rows of a command's --json: a DataFrame where pandas is, else a list of dicts."""
    rows = json.loads(_run(*arguments, "--json", **options))["rows"]
    if "pandas" in sys.modules or _has("pandas"):
        import pandas

        return pandas.DataFrame(rows)
    return rows


def _has(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def _settings(settings: Mapping | None) -> builtins.list[str]:
    words = []
    for key, value in (settings or {}).items():
        words += ["--set", f"{key}={text_of('settings', key, value)}"]
    return words


def list():
    """Every mixer: law, source, state, parameters, flops of a token."""
    return _table("list")


def show(preset: str, settings: Mapping | None = None, *, width: int | None = None) -> str:
    """A mixer's options, equations and costs, as text."""
    return _run("show", preset, *_settings(settings), *(["--width", width] if width else []))


def check(*subjects: str):
    """Laws or presets, every form against the reference: the errors beside their limits. Without subjects, the laws."""
    return _table("check", *subjects, failure_is_a_result=True)


def bench(law: str | None = None, *, preset: str | None = None, layers: bool = False, train: bool = False, crossover: bool = False,
          quick: bool = True, threads: int | None = None):
    """Times of a law, or of all. layers: of whole mixers; train: of steps of training a model of four layers; of one preset, or of
    all. crossover: the length from which on a law is cheaper than softmax attention."""
    flags = {"--layers": layers, "--train": train, "--crossover": crossover, "--quick": quick}
    values = {"--law": law, "--preset": preset, "--threads": threads}
    given = [word for name, value in values.items() if value is not None for word in (name, value)]
    return _table("bench", *given, *[name for name, wanted in flags.items() if wanted])


def runs(folder: str | os.PathLike = "runs"):
    """All runs below a folder: how they stand, what they ended with."""
    return _table("runs", folder)


def claims():
    """What study() can measure: every claim with its source, statement and rule."""
    return _table("study", "--list")


def study(*claims: str, full: bool = False, out: str | os.PathLike = "results", seeds: int | None = None):
    """Claims of the sources, measured here: a row each, with the verdict."""
    options = ["--full" if full else "--quick", "--out", out] + (["--seeds", seeds] if seeds else [])
    return _table("study", *claims, *options, patience=0.5)  # results and runs are whole files, and the next study goes on with them


class Run:
    """A run's folder: its metrics, its model, a picture of its curve in a notebook."""

    def __init__(self, path):
        self.path = Path(path)

    @property
    def metrics(self) -> builtins.list[dict]:
        """Every line of metrics.jsonl, of which those with `eval` are evaluations."""
        with open(self.path / "metrics.jsonl") as lines:
            return [json.loads(line) for line in lines if line.endswith("\n")]

    def load(self, **options) -> Model:
        return load(self.path, **options)

    def __fspath__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        points = [(line["step"], line["loss"]) for line in self.metrics if line.get("loss") is not None]
        return f"<p>isomer run <code>{self.path}</code></p>" + _curve(points)

    def __repr__(self):
        return f"<isomer.Run {self.path}>"


def _curve(points, width=480, height=160) -> str:
    """Loss over steps as a small SVG."""
    if len(points) < 2:
        return ""
    (x0, x1), (y0, y1) = ((min(axis), max(axis)) for axis in zip(*points))
    place = lambda x, y: f"{(x - x0) / max(x1 - x0, 1e-12) * width:.1f},{height - (y - y0) / max(y1 - y0, 1e-12) * height:.1f}"
    line = " ".join(place(x, y) for x, y in points)
    return (f'<svg width="{width + 8}" height="{height + 24}" role="img" aria-label="training loss"><polyline fill="none" '
            f'stroke="#3b6fb6" points="{line}"/><text x="0" y="{height + 18}" font-size="12">loss {y0:.3g} to {y1:.3g}, '
            f"steps {x0} to {x1}</text></svg>")


def train(recipe: str | os.PathLike, settings: Mapping | None = None, *, out: str | os.PathLike | None = None, resume: bool = False,
          callback: Callable[[dict], None] | None = None, progress: bool = True) -> Run:
    """Trains a recipe (a TOML file) and returns its run. callback(line) gets every line of metrics.jsonl as it is written; an exception
    in it, or Ctrl-C, ends the run after its checkpoint. A bar shows where tqdm is installed."""
    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="isomer-")) / Path(recipe).stem
    command = [program(), "train", os.fspath(recipe), *_settings(settings), "--out", str(folder), *(["--resume"] if resume else [])]
    metrics = folder / "metrics.jsonl"
    known = metrics.stat().st_size if metrics.exists() else 0  # another run's, or that of the run that goes on
    bar, loss = _bar() if progress and _has("tqdm") else None, None
    with tempfile.TemporaryFile("w+") as errors, _start(command, stdout=subprocess.DEVNULL, stderr=errors) as child:
        try:
            for line in _follow(metrics, child, known):
                if bar is not None:
                    bar.total = bar.total or _steps(folder)
                    loss = line.get("loss", loss)
                    bar.set_postfix(loss=loss, refresh=False)
                    bar.update(line["step"] - bar.n)
                if callback is not None:
                    callback(line)
        except BaseException:
            child.send_signal(signal.SIGINT)
            child.wait()
            raise
        finally:
            if bar is not None:
                bar.refresh()
                bar.close()
        errors.seek(0)
        if child.returncode != 0:
            _fail(child.returncode, errors.read())
    return Run(folder)


def _bar():
    from tqdm.auto import tqdm

    return tqdm(unit="step")


def _steps(folder: Path) -> int | None:
    """How many a run has in all, as the recipe in its folder says."""
    recipe = folder / "recipe.toml"
    train = re.search(r"^\[train\]$(.*?)(?=^\[|\Z)", recipe.read_text() if recipe.exists() else "", re.MULTILINE | re.DOTALL)
    steps = re.search(r"^steps\s*=\s*(\d+)\s*$", train[1], re.MULTILINE) if train else None
    return int(steps[1]) if steps else None


def _follow(path: Path, child, read: int):
    """The lines behind the first `read` bytes of a file that a process writes, until it has ended."""
    rest = b""
    while True:
        ended = child.poll() is not None
        if path.exists():
            with open(path, "rb") as file:
                file.seek(read)
                new = file.read()
            read += len(new)
            *lines, rest = (rest + new).split(b"\n")
            for line in lines:
                yield json.loads(line)
        if ended:
            return
        time.sleep(0.05)


def convert(run: str | os.PathLike, mixer: str, out: str | os.PathLike, *arguments: str) -> Run:
    """A run with another mixer on its old projections; arguments are those of `isomer convert`."""
    _run("convert", run, "--mixer", mixer, "--out", out, *arguments)
    return Run(out)
