"""Train a small model, watch it, and stream from it.   usage: python train_and_stream.py [STEPS]"""
import sys
import tempfile
from pathlib import Path

import numpy as np

import isomer

RECIPE = """
[model]
layers = "gla*2"
width = 32
[task]
name = "induction"
length = 32
vocabulary = 16
[train]
steps = 400
batch = 32
lr = 3e-3
eval_every = 100
"""


def watch(line):
    if "eval" in line:
        print(f"step {line['step']}: {line['eval']}")


folder = Path(tempfile.mkdtemp())
(folder / "recipe.toml").write_text(RECIPE)
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 400
run = isomer.train(folder / "recipe.toml", {"train.steps": steps}, out=folder / "run", callback=watch)

model = run.load()
prompt = np.array([[3, 7, 1, 5]])
state = model.start()
logits = state.prefill(prompt)
fork = state.copy()  # two continuations of one prompt
print("likeliest next token", logits.argmax(), "; state", state.bytes, "bytes;", fork.positions, "tokens seen")
print(model.generate("3 7 1 5", tokens=12, temperature=0))
