"""What the tests of the program share. Their first argument is the program."""
import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(sys.argv[1]).resolve()

# Trains in a fraction of a second.
RECIPE = """
[model]
width = 16
layers = ["gla", "sliding-window"]
dropout = 0.1
[mixer.all]
heads = 2
[mixer.sliding-window]
window = 8
[task]
name = "mqar"
vocabulary = 64
length = 32
pairs = 2
[train]
steps = 60
batch = 8
short_window = 4
log_every = 1
eval_every = 20
save_every = 3
eval_examples = 16
"""


def command(*arguments):
    return [str(PROGRAM), *map(str, arguments)]


def isomer(*arguments, **kwargs):
    return subprocess.run(command(*arguments), capture_output=True, text=True, **kwargs)


def metrics(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def record(run):
    """Metrics without times, and the bytes of the last checkpoint."""
    lines = metrics(run)
    for line in lines:
        line.pop("seconds", None)
        line.pop("tokens_per_s", None)
    latest = run / "checkpoints" / "latest"
    return lines, {name: (latest / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors", "config.json")}


def expect(condition, text):
    if not condition:
        sys.exit(f"{Path(sys.argv[0]).stem}: {text}")
