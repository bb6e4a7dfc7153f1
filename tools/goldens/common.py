"""What the goldens of every law share: tensors of mpf, gradients by central differences, seeded inputs, and a case as JSON."""

import itertools
import json
import math
import random

from mpmath import mp, mpf, sqrt

mp.dps = 120
STEP = mpf("1e-40")
ROUNDING = mpf("1e-75")  # differences below this share of the loss are rounding: their derivative is written as 0
INF = math.inf
NO_GRADIENT = {"offsets", "initial_max", "initial_count"}
PACKED = {"T": 8, "offsets": [0, 3, 3, 4, 8]}


class Tensor:
    """A row-major array of mpf (of int for offsets); an index of fewer axes than the shape means the block below it."""

    def __init__(self, shape, data=None):
        self.shape, self.data = shape, data or [mpf(0)] * math.prod(shape)
        self.steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]

    def block(self, index):
        assert all(0 <= i < n for i, n in zip(index, self.shape))
        start = sum(i * step for i, step in zip(index, self.steps))
        return slice(start, start + self.steps[len(index) - 1])

    def __getitem__(self, index):
        block = self.data[self.block(index)]
        return block if len(index) < len(self.shape) else block[0]

    def __setitem__(self, index, value):
        self.data[self.block(index)] = value if len(index) < len(self.shape) else [value]

    def head(self, b, t, h, heads):
        """The vector that head h of `heads` reads at token t."""
        return self[b, t, h // (heads // self.shape[2])]

    def json(self):
        number = int if self.data and isinstance(self.data[0], int) else float
        return {"shape": self.shape, "data": ["-inf" if value == -INF else number(value) for value in self.data]}


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), mpf(0))


def weighted(weights, vectors, size):
    return [sum((w * x[c] for w, x in zip(weights, vectors, strict=True)), mpf(0)) for c in range(size)]


def sequences(x):
    """(batch row, first token, end, index of the state) of every sequence."""
    if "offsets" in x:
        return [(0, first, end, n) for n, (first, end) in enumerate(itertools.pairwise(x["offsets"].data))]
    B, T = x["q" if "q" in x else "x"].shape[:2]
    return [(b, 0, T, b) for b in range(B)]


def common(x, options):
    """q, k, v, the number of heads, scale, causal."""
    q, k, v = x["q"], x["k"], x["v"]
    scale = mpf(options["scale"]) if "scale" in options else 1 / sqrt(mpf(q.shape[-1]))
    return q, k, v, max(q.shape[2], k.shape[2], v.shape[2]), scale, options.get("causal", "true") == "true"


def gradients(law, x, options, outputs):
    """Central differences of the loss, taken output by output so that what an input cannot reach gives exactly 0."""
    gives = {name.removeprefix("grad_"): x[name].data for name in x if name.startswith("grad_")}
    size = sum(abs(g * y) for name, grad in gives.items() for g, y in zip(grad, outputs[name].data, strict=True))
    found = {}
    for name, tensor in x.items():
        if name in NO_GRADIENT or name.startswith("grad_"):
            continue
        grad = found[f"grad_{name}"] = Tensor(tensor.shape)
        for place, value in enumerate(tensor.data):
            if value == -INF:
                continue
            tensor.data[place] = value + STEP
            above = law(x, options, outputs)
            tensor.data[place] = value - STEP
            below, tensor.data[place] = law(x, options, outputs), value
            change = sum(dot(g, [a - b for a, b in zip(above[o].data, below[o].data)]) for o, g in gives.items())
            grad.data[place] = change / (2 * STEP) if abs(change) > ROUNDING * STEP * size else mpf(0)
    return found


def sizes(case):
    """The sizes of a case by letter, its heads of q, k and v, and the number N of its sequences."""
    found = {letter: case.get(letter, default) for letter, default in {"B": 1, "T": 6, "K": 3, "V": 2}.items()}
    heads = case.get("heads", (2, 2, 2))
    found |= {"S": case.get("S", found["T"]), "H": max(heads), "N": len(case["offsets"]) - 1 if "offsets" in case else found["B"]}
    return found | dict(zip(("Gq", "Gk", "Gv"), heads))


def inputs(law, case):
    """Seeded multiples of 1/1024, (-1.5, 1.5) unless the law's RANGES (or ranges(case)) say otherwise. The law's SHAPES name the
    axes of each tensor by letter; a final or initial state has the shape of `state`, … there. `required` tensors come first, `extra`
    names the optional ones, `times` scales one, `put` sets single entries; a name's alternative shape has a suffix, NAME:WHICH."""
    draw = random.Random(f"{law.NAME}/{case['name']}")
    letters, ranges, x = sizes(case) | getattr(law, "sizes", lambda _: {})(case), law.ranges(case), {}
    names = [*case.get("required", law.REQUIRED).split(), *case.get("extra", "").split(), *case.get("grads", law.GRADS).split()]
    for name in names:
        axes = law.SHAPES.get(name) or law.SHAPES.get(name.removeprefix("grad_"))
        axes = axes or law.SHAPES[name.removeprefix("grad_final_").removeprefix("initial_")]
        shape = tuple(letters[axis] for axis in axes.split())
        low, high = ranges.get(name, (-1.5, 1.5))
        factor, grid = case.get("times", {}).get(name, 1), 1 if name == "initial_count" else 1024
        values = [factor * (low + (high - low) * draw.random()) for _ in range(math.prod(shape))]
        x[name.split(":")[0]] = Tensor(shape, [mpf(round(grid * value)) / grid for value in values])
    for name, entries in case.get("put", {}).items():
        for index, value in entries.items():
            x[name][index] = mpf(value)
    if "offsets" in case:
        x["offsets"] = Tensor((letters["N"] + 1,), case["offsets"])
    return x


def solve(law, case):
    x, options = inputs(law, case), case["options"]
    outputs = law.law(x, options)
    outputs |= gradients(law.law, x, options, outputs)
    groups = [{name: tensor.json() for name, tensor in group.items()} for group in (x, outputs)]
    entry = {"name": case["name"], "options": options, "inputs": groups[0], "outputs": groups[1]}
    return json.dumps(entry, separators=(",", ":"), allow_nan=False)


def case(name, options="", **rest):
    return {"name": name, "options": dict(word.split("=") for word in options.split()), **rest}
