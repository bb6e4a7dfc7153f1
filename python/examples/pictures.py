"""Curves of two runs and what their mixers attend to, as a picture.   usage: python pictures.py [FILE.png] [STEPS]"""
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

import isomer  # noqa: E402

file = sys.argv[1] if len(sys.argv) > 1 else "pictures.png"
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 100
folder = Path(tempfile.mkdtemp())
(folder / "recipe.toml").write_text("""
[model]
layers = "gla*2"
width = 32
[task]
name = "induction"
length = 32
vocabulary = 16
[train]
batch = 16
log_every = 1
""")

figure, (left, *right) = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
runs = []
for mixer in ("gla", "softmax"):
    settings = {"model.layers": f"{mixer}*2", "train.steps": steps}
    runs.append(isomer.train(folder / "recipe.toml", settings, out=folder / mixer, progress=False))
isomer.plot.curves(runs, axes=left)
isomer.plot.attention("gla", np.random.default_rng(1).standard_normal((24, 32)), {"heads": 2}, axes=right)
figure.savefig(file)
print("wrote", file)
