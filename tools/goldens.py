#!/usr/bin/env python3
"""High-precision goldens for the laws `attention` and `scalar_decay`.

    python3 tools/goldens.py            writes tests/goldens/{attention,scalar_decay}.json
    python3 tools/goldens.py --check    regenerates them and exits 1 if a kept file differs

Needs mpmath. Every law is its definition: explicit sums over the visible keys, nothing rescaled, at 120 digits. Gradients are
central differences (step 1e-40) of sum(grad_o * o) + sum(grad_final_X * final_X), so they rest on no derivation. Inputs are
exact in float32 and as decimals; outputs are rounded to the nearest double; -inf is the string "-inf".

Readings of the contract where it leaves a choice:
 1. log_forget and log_decay at position r act on what was written before r; the own key of a token is never decayed.
 2. attention `sum`: den is the true sum of weights, eps is added to that; log_sum = log(den) without eps.
 3. l2, rms and layer with the exp kernel act on num/den, without eps in that division.
 4. A key of weight zero (behind a gate of -inf) is visible: it counts in `count` and `gate`. Sinks decay like any key.
 5. Without causality the query t has position t whatever S is; a bidirectional window is used here only with S = T.
 6. scalar_decay: an absent initial state, log_input or log_decay is zero; `sum` and `max` take den = scale * q.n.
 7. `max`: states outside are true * exp(-m); m_t = max(log_decay_t + m_{t-1}, log_input_t). m_0 is initial_max; 0 if only
    initial_max is absent; -inf if there is no initial state at all.
 8. causal=false still yields the final states: the sums over the whole sequence, with gradients.
 9. The gradient at a gate of -inf is 0. initial_max and initial_count have no gradient and none is written for them.
10. A sequence without tokens hands its initial states on unchanged.
"""

import argparse
import json
import math
import multiprocessing
import pathlib
import random
import sys

from mpmath import exp, log, mp, mpf, sqrt

mp.dps = 120
STEP = mpf("1e-40")
ROUNDING = mpf("1e-75")  # differences below this share of the loss are rounding: their derivative is written as 0
INF = math.inf
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "goldens"
NO_GRADIENT = {"offsets", "initial_max", "initial_count"}


class Tensor:
    """A row-major array of mpf (of int for offsets)."""

    def __init__(self, shape, data=None):
        self.shape = tuple(shape)
        self.data = [mpf(0)] * math.prod(self.shape) if data is None else data

    def at(self, index):
        flat = 0
        for i, n in zip(index, self.shape, strict=True):
            assert 0 <= i < n
            flat = flat * n + i
        return flat

    def __getitem__(self, index):
        return self.data[self.at(index)]

    def row(self, *index):
        start = self.at((*index, 0))
        return self.data[start : start + self.shape[-1]]

    def put(self, index, *values):
        """Writes values from index on."""
        start = self.at(index)
        self.data[start : start + len(values)] = values

    def head(self, b, t, h, heads):
        """The vector that head h of `heads` reads at token t."""
        return self.row(b, t, h // (heads // self.shape[2]))

    def json(self):
        number = int if all(isinstance(value, int) for value in self.data) else float
        return {"shape": self.shape, "data": ["-inf" if value == -INF else number(value) for value in self.data]}


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), mpf(0))


def weighted(weights, vectors, size):
    return [sum((w * x[c] for w, x in zip(weights, vectors, strict=True)), mpf(0)) for c in range(size)]


def sequences(x):
    """(batch row, first token, end, index of the state) of every sequence; end None = the whole row."""
    if "offsets" in x:
        ends = x["offsets"].data
        return [(0, ends[n], ends[n + 1], n) for n in range(len(ends) - 1)]
    return [(b, 0, None, b) for b in range(x["q"].shape[0])]


def scale_of(x, options):
    return mpf(options["scale"]) if "scale" in options else 1 / sqrt(mpf(x["q"].shape[-1]))


def attention(x, options, _=None):
    q, k, v = x["q"], x["k"], x["v"]
    B, T, S, V = *q.shape[:2], k.shape[1], v.shape[-1]
    H = max(q.shape[2], k.shape[2], v.shape[2])
    causal = options.get("causal", "true") == "true"
    window, sinks = int(options.get("window", 0)), int(options.get("sinks", 0))
    normaliser, exp_kernel = options.get("normaliser", "sum"), options.get("kernel", "exp") == "exp"
    scale, order = scale_of(x, options), int(options.get("order", 2))
    eps = mpf(options.get("eps", {"l2": "1e-12", "rms": "1e-6", "layer": "1e-5"}.get(normaliser, 0)))
    out = {"o": Tensor((B, T, H, V))}
    if exp_kernel and normaliser == "sum":
        out["log_sum"] = Tensor((B, T, H))

    def visible(i, j, first):
        if not causal:
            return window == 0 or abs(i - j) < window
        return j <= i and (window == 0 or i - j < window or j - first < sinks)

    def weight(b, i, j, h, logit):
        decay = sum((x["log_forget"][b, r, h] for r in range(j + 1, i + 1)), mpf(0)) if "log_forget" in x else mpf(0)
        return exp(logit + decay) if exp_kernel else exp(decay) * sum(logit**n / math.factorial(n) for n in range(order + 1))

    def normalise(num, den, count, b, t, h):
        if exp_kernel and normaliser in ("l2", "rms", "layer"):
            num = [y / den for y in num]
        if normaliser == "layer":
            num = [y - sum(num) / V for y in num]
        if normaliser in ("rms", "layer"):
            return [y / sqrt(dot(num, num) / V + eps) for y in num]
        if normaliser == "l2":
            return [y / max(sqrt(dot(num, num)), eps) for y in num]
        if normaliser in ("count", "gate"):
            return [y * (x["gate"][b, t, h] if normaliser == "gate" else 1) / count for y in num]
        return [y / (den + eps) for y in num] if normaliser == "sum" else num

    for b, first, end, _ in sequences(x):
        queries, keys = (range(T), range(S)) if end is None else (range(first, end),) * 2
        for t in queries:
            i = t + S - T if causal else t
            for h in range(H):
                seen = [j for j in keys if visible(i, j, first)]
                logits = [scale * dot(q.head(b, t, h, H), k.head(b, j, h, H)) for j in seen]
                weights = [weight(b, i, j, h, logit) for j, logit in zip(seen, logits)]
                num = weighted(weights, [v.head(b, j, h, H) for j in seen], V)
                out["o"].put((b, t, h, 0), *normalise(num, sum(weights), len(seen), b, t, h))
                if "log_sum" in out:
                    out["log_sum"].put((b, t, h), log(sum(weights)))
    return out


def scalar_decay(x, options, fixed=None):
    """`fixed`: outputs whose final_max is the scale of the final states, instead of this call's own."""
    q, k, v = x["q"], x["k"], x["v"]
    B, T, K, V = *q.shape[:2], k.shape[-1], v.shape[-1]
    H = max(q.shape[2], k.shape[2], v.shape[2])
    N = len(sequences(x))
    causal, normaliser = options.get("causal", "true") == "true", options.get("normaliser", "none")
    scale, eps = scale_of(x, options), mpf(options.get("eps", 0))
    shapes = {"state": (N, H, K, V), "norm": (N, H, K), "max": (N, H), "value_sum": (N, H, V), "count": (N,)}
    kept = {"none": [], "sum": ["norm"], "max": ["norm", "max"], "subtract": ["norm", "value_sum", "count"]}[normaliser]
    out = {"o": Tensor((B, T, H, V))} | {f"final_{name}": Tensor(shapes[name]) for name in ["state", *kept]}
    initial = {name: x.get(f"initial_{name}", Tensor(shapes[name])) for name in shapes}
    has_initial = any(name.startswith("initial_") for name in x)

    def log_decay(b, t, h):
        if "log_decay" not in x:
            return mpf(0)
        return x["log_decay"][b, t, h] if len(x["log_decay"].shape) == 3 else x["log_decay"][(h,)]

    def log_input(b, t, h):
        return x["log_input"][b, t, h] if "log_input" in x else mpf(0)

    def sums(b, first, end, n, h):
        """True Σ w k vᵀ, Σ w k, Σ v and the count over the tokens [first, end), on top of the initial states."""
        decay = [sum((log_decay(b, r, h) for r in range(j + 1, end)), mpf(0)) for j in range(first - 1, end)]
        start = exp(decay[0] + initial["max"][n, h])
        weights = [exp(decay[j - first + 1] + log_input(b, j, h)) for j in range(first, end)]
        keys = [k.head(b, j, h, H) for j in range(first, end)]
        values = [v.head(b, j, h, H) for j in range(first, end)]
        state = [
            [start * initial["state"][n, h, a, c] + sum((w * y[a] * z[c] for w, y, z in zip(weights, keys, values)), mpf(0))
             for c in range(V)] for a in range(K)
        ]  # fmt: skip
        norm = [start * a + s for a, s in zip(initial["norm"].row(n, h), weighted(weights, keys, K))]
        value_sum = [a + s for a, s in zip(initial["value_sum"].row(n, h), weighted([mpf(1)] * len(values), values, V))]
        return state, norm, value_sum, initial["count"][(n,)] + len(values)

    def read(query, state, norm, value_sum, count):
        num = [scale * dot(query, column) for column in zip(*state)]
        den = scale * dot(query, norm)
        if normaliser == "sum":
            return [y / (den + eps) for y in num]
        if normaliser == "max":
            return [y / (max(abs(den), mpf(1)) + eps) for y in num]
        if normaliser == "subtract":
            return [u / count + (y - den * u / count) / count for y, u in zip(num, value_sum)]
        return num

    for b, first, end, n in sequences(x):
        end = T if end is None else end
        for h in range(H):
            for t in range(first, end):
                out["o"].put((b, t, h, 0), *read(q.head(b, t, h, H), *sums(b, first, t + 1 if causal else end, n, h)))
            shrink = mpf(1)
            if normaliser == "max":
                m = initial["max"][n, h] if has_initial else -mpf(INF)
                for t in range(first, end):
                    m = max(log_decay(b, t, h) + m, log_input(b, t, h))
                out["final_max"].put((n, h), m)
                shrink = exp(-(fixed or out)["final_max"][n, h])
            state, norm, value_sum, count = sums(b, first, end, n, h)
            out["final_state"].put((n, h, 0, 0), *(shrink * y for line in state for y in line))
            if normaliser != "none":
                out["final_norm"].put((n, h, 0), *(shrink * y for y in norm))
            if normaliser == "subtract":
                out["final_value_sum"].put((n, h, 0), *value_sum)
                out["final_count"].put((n,), count)
    return out


LAWS = {"attention": attention, "scalar_decay": scalar_decay}


def gradients(law, x, options, outputs):
    """Central differences of the loss, taken output by output so that what an input cannot reach gives exactly 0."""
    gives = {name[5:]: x[name].data for name in x if name.startswith("grad_")}
    size = sum(abs(g * y) for name, grad in gives.items() for g, y in zip(grad, outputs[name].data, strict=True))
    found = {}
    for name, tensor in x.items():
        if name in NO_GRADIENT or name.startswith("grad_"):
            continue
        grad = found[f"grad_{name}"] = Tensor(tensor.shape)
        for place, value in enumerate(tensor.data):
            if value == -INF:
                continue
            ends = []
            for side in (value + STEP, value - STEP):
                tensor.data[place] = side
                ends.append(law(x, options, outputs))
            tensor.data[place] = value
            change = sum(dot(g, [a - b for a, b in zip(ends[0][out].data, ends[1][out].data)]) for out, g in gives.items())
            grad.data[place] = change / (2 * STEP) if abs(change) > ROUNDING * STEP * size else mpf(0)
    return found


def inputs(law, case):
    """Seeded inputs, multiples of 1/1024 (exact in float32). `extra` names the optional tensors, `times` scales one, `put` sets
    single entries."""
    draw = random.Random(f"{law}/{case['name']}")
    B, T, K, V = (case.get(letter, default) for letter, default in zip("BTKV", (1, 6, 3, 2)))
    S, heads = case.get("S", T), case.get("heads", (2, 2, 2))
    H, N = max(heads), len(case["offsets"]) - 1 if "offsets" in case else B
    shapes = {
        "q": (B, T, heads[0], K), "k": (B, S, heads[1], K), "v": (B, S, heads[2], V), "grad_o": (B, T, H, V), "gate": (B, T, H),
        "log_forget": (B, S, H), "log_decay": (B, T, H), "log_decay_head": (H,), "log_input": (B, T, H),
        "initial_max": (N, H), "initial_count": (N,), "state": (N, H, K, V), "norm": (N, H, K), "value_sum": (N, H, V),
    }  # fmt: skip
    ranges = {"gate": (0.05, 0.95), "log_forget": (-1.5, 0), "log_decay": (-1.5, 0), "log_decay_head": (-1.5, 0)}
    if law == "scalar_decay" and case["options"].get("normaliser") == "sum":  # keeps den away from 0
        ranges |= {name: (0.1, 1.5) for name in ("q", "k", "initial_norm")}
    x = {}
    for name in ["q", "k", "v", *case.get("extra", "").split(), *case.get("grads", "grad_o").split()]:
        shape = shapes.get(name) or shapes[name.removeprefix("grad_final_").removeprefix("initial_")]
        low, high = ranges.get(name, (-1.5, 1.5))
        factor, grid = case.get("times", {}).get(name, 1), 1 if name == "initial_count" else 1024
        values = [factor * (low + (high - low) * draw.random()) for _ in range(math.prod(shape))]
        x[name.removesuffix("_head")] = Tensor(shape, [mpf(round(grid * value)) / grid for value in values])
    for name, entries in case.get("put", {}).items():
        for index, value in entries.items():
            x[name].put(index, mpf(value))
    if "initial_count" in x:
        x["initial_count"].data = [count + 3 for count in x["initial_count"].data]
    if "offsets" in case:
        x["offsets"] = Tensor((N + 1,), case["offsets"])
    return x


def solve(job):
    law, case = job
    x = inputs(law, case)
    outputs = LAWS[law](x, case["options"])
    outputs |= gradients(LAWS[law], x, case["options"], outputs)
    tensors = [{name: tensor.json() for name, tensor in group.items()} for group in (x, outputs)]
    entry = {"name": case["name"], "options": case["options"], "inputs": tensors[0], "outputs": tensors[1]}
    return json.dumps(entry, separators=(",", ":"), allow_nan=False)


def case(name, options="", **rest):
    return {"name": name, "options": dict(word.split("=") for word in options.split()), **rest}


FORGET = {"log_forget": {(0, 2, 0): -INF, (0, 5, 0): -50, (0, 3, 1): -1e4, (0, 6, 1): 2.5}}
LONG = {"T": 8, "extra": "log_forget", "put": FORGET}
LOGITS = {"K": 4, "times": {"q": 60}}
PACKED = {"T": 8, "offsets": [0, 3, 3, 4, 8]}
TAYLOR = ("0 sum", "1 l2", "1 none", "2 sum", "2 l2", "2 rms", "2 layer", "2 count", "4 sum", "4 l2", "4 none")

ATTENTION = [
    *(case(f"exp_{n}", f"normaliser={n}", V=3) for n in ("sum", "l2", "rms", "layer", "count", "none")),
    *(case(f"taylor{p}_{n}", f"kernel=taylor order={p} normaliser={n}", V=3) for p, n in map(str.split, TAYLOR)),
    case("taylor1_sum", "kernel=taylor order=1", times={"q": 0.3}),
    *(case(f"{kernel}_gate", f"kernel={kernel} normaliser=gate", extra="gate") for kernel in ("exp", "taylor")),
    case("batch_odd", B=2, T=5, K=5, V=1),
    case("bidirectional", "causal=false"),
    case("bidirectional_layer", "causal=false normaliser=layer", V=5, T=5),
    case("bidirectional_taylor4", "causal=false kernel=taylor order=4"),
    case("bidirectional_more_keys", "causal=false", T=3, S=7),
    case("bidirectional_fewer_keys", "causal=false", T=7, S=3),
    case("bidirectional_window", "causal=false window=3", T=8),
    case("bidirectional_window_count", "causal=false window=2 normaliser=count", T=7),
    *(case(f"window{w}", f"window={w}") for w in (1, 3, 50)),
    case("window_taylor2", "window=3 kernel=taylor", T=7),
    case("window_sinks", "window=3 sinks=2", T=8),
    case("window_sinks_count", "window=3 sinks=2 normaliser=count", T=8),
    case("window_sinks_forget", "window=3 sinks=2", T=8, extra="log_forget"),
    case("window_sinks_forget_extreme", "window=3 sinks=1", **LONG),
    case("window_sinks_forget_taylor2", "window=2 sinks=2 kernel=taylor normaliser=l2", T=7, extra="log_forget"),
    case("forget", extra="log_forget"),
    *(case(f"forget_extreme_{n}", f"normaliser={n}", **LONG) for n in ("sum", "l2", "layer", "count", "none")),
    case("forget_extreme_gate", "normaliser=gate", T=8, extra="log_forget gate", put=FORGET),
    case("forget_extreme_taylor2", "kernel=taylor", **LONG),
    case("forget_first", extra="log_forget", T=4, put={"log_forget": {(0, 0, 0): -INF, (0, 0, 1): 4.0}}),
    case("forget_everything", extra="log_forget", T=4, put={"log_forget": {(0, t, 0): -INF for t in range(4)}}),
    *(case(f"logits_{n}", f"normaliser={n}", **LOGITS) for n in ("sum", "l2", "rms", "none")),
    case("logits_bidirectional", "causal=false", **LOGITS),
    case("logits_forget", **LONG, **LOGITS),
    case("more_keys", T=4, S=9),
    case("more_keys_window_sinks_forget", "window=3 sinks=1", T=4, S=9, extra="log_forget"),
    case("more_keys_count", "normaliser=count", T=3, S=7),
    *(case("grouped_" + "".join(map(str, heads)), heads=heads, T=5) for heads in ((4, 2, 1), (2, 2, 4))),
    case("grouped_412_gate", "normaliser=gate", heads=(4, 1, 2), T=5, extra="gate log_forget"),
    case("packed", **PACKED),
    case("packed_window_sinks_forget", "window=2 sinks=1", extra="log_forget", **PACKED),
    case("packed_bidirectional_count", "causal=false normaliser=count", **PACKED),
    case("t1", T=1),
    case("t1_layer_forget", "normaliser=layer", T=1, V=3, extra="log_forget"),
    *(case(f"scale_eps_{n}", f"scale=0.75 eps=0.5 normaliser={n}", times={"v": 0.6}) for n in ("sum", "l2", "rms", "layer")),
    case("scale_eps_taylor2", "scale=-0.25 eps=0.5 kernel=taylor"),
]

DECAYS = {"log_decay": {(0, 1, 0): -50, (0, 3, 0): -INF, (0, 5, 0): 0, (0, 2, 1): -1e4, (0, 4, 1): 0, (0, 6, 1): -INF}}
INPUTS = {"log_input": {(0, 0, 0): 80, (0, 2, 0): -80, (0, 5, 0): 80, (0, 1, 1): -80, (0, 3, 1): 80, (0, 6, 1): -80}}
MAXIMA = {"initial_max": {(0, 0): -40, (0, 1): 60, (1, 0): 0, (1, 1): -80}, "log_input": {(1, 2, 1): -80}}
SHIFTED = {"k": {(0, t, h, 0): 40 + t / 4 for t in range(6) for h in range(2)}}
GATED = ("none", "sum", "max")
STATES = {"none": "", "sum": "norm", "max": "norm", "subtract": "norm value_sum"}  # states with a gradient, besides `state`
SCALES = {"max": " initial_max", "subtract": " initial_count"}


def grads(normaliser):
    return " ".join(["grad_o", *(f"grad_final_{name}" for name in ("state " + STATES[normaliser]).split())])


def carried(name, normaliser, gates="", options="", **rest):
    """A case with every initial state, and a gradient into every final one."""
    extra = gates + "".join(f" initial_{name}" for name in ("state " + STATES[normaliser]).split()) + SCALES.get(normaliser, "")
    return case(name, f"normaliser={normaliser} {options}", extra=extra, grads=grads(normaliser), **rest)


SCALAR_DECAY = [
    *(case(n, f"normaliser={n}", T=5) for n in STATES),
    *(case(f"{n}_decay_head", f"normaliser={n}", extra="log_decay_head", T=5) for n in GATED),
    *(case(f"{n}_decay_head_0_1", f"normaliser={n}", extra="log_decay_head", T=4, put={"log_decay": {(0,): -INF, (1,): 0}})
      for n in GATED),
    *(case(f"{n}_gates", f"normaliser={n}", extra="log_decay log_input", K=4, V=3) for n in GATED),
    *(case(f"{n}_input_80", f"normaliser={n}", extra="log_input", T=7, put=INPUTS) for n in GATED),
    *(carried(f"{n}_carried", n, T=4) for n in STATES),
    *(carried(f"{n}_gates_carried", n, "log_decay log_input") for n in GATED),
    *(carried(f"{n}_decay_head_carried", n, "log_decay_head", T=4) for n in GATED),
    *(carried(f"{n}_extreme_decay", n, "log_decay", T=8, put=DECAYS) for n in GATED),
    *(carried(f"{n}_first_decay_zero", n, "log_decay", T=3, put={"log_decay": {(0, 0, 0): -INF}}) for n in GATED),
    *(carried(f"{n}_positive_decay", n, "log_decay", T=5, put={"log_decay": {(0, 1, 0): 1.5, (0, 4, 1): 3}}) for n in GATED),
    carried("max_extreme_gates", "max", "log_decay log_input", T=8, put=DECAYS | INPUTS),
    carried("max_extreme_scale", "max", "log_decay log_input", B=2, T=3, put=MAXIMA),
    case("max_no_initial_max", "normaliser=max", extra="log_decay log_input initial_state initial_norm", grads=grads("max")),
    *(case(f"max_queries_{f}", "normaliser=max", extra="log_decay log_input", times={"q": f}) for f in (0.25, 20)),
    *(carried(f"{n}_scale_eps", n, "log_decay log_input", "eps=0.25 scale=0.75", T=5) for n in ("sum", "max")),
    carried("none_scale", "none", "log_decay", "scale=-1.25", T=4),
    carried("subtract_scale", "subtract", "", "scale=0.75"),
    carried("subtract_shifted_keys", "subtract", put=SHIFTED),
    *(case(f"global_{n}", f"causal=false normaliser={n}", grads=grads(n)) for n in ("none", "sum", "subtract")),
    case("global_sum_input", "causal=false normaliser=sum", extra="log_input", T=5),
    case("global_none_grouped_421", "causal=false", heads=(4, 2, 1), T=5),
    case("global_subtract_packed", "causal=false normaliser=subtract", **PACKED),
    *(carried(f"{n}_grouped_421", n, heads=(4, 2, 1), T=3, K=2) for n in STATES),
    *(carried(f"{n}_grouped_224", n, "log_decay log_input" if n in GATED else "", heads=(2, 2, 4), T=3, K=2) for n in STATES),
    case("none_grouped_142", extra="log_decay", heads=(1, 4, 2), T=4),
    *(carried(f"{n}_packed_carried", n, K=2, **PACKED) for n in STATES),
    *(case(f"{n}_packed", f"normaliser={n}", extra="log_decay log_input", T=8, offsets=[0, 3, 4, 8]) for n in GATED),
    case("none_packed_empty", extra="log_decay", grads=grads("none"), **PACKED),
    *(carried(f"{n}_t1", n, T=1) for n in STATES),
    case("subtract_t1_alone", "normaliser=subtract", T=1),
    carried("max_t0", "max", T=0),
    case("none_final_only", extra="log_decay log_input initial_state", grads="grad_final_state", T=5),
    carried("sum_batch_odd", "sum", "log_decay", B=2, T=3, K=5, V=1),
]


def main():
    parser = argparse.ArgumentParser(description="Regenerate the goldens of attention and scalar_decay.")
    parser.add_argument("--check", action="store_true", help="compare with the kept files, write nothing")
    check, differs = parser.parse_args().check, False
    with multiprocessing.Pool(2) as pool:
        for law, cases in {"attention": ATTENTION, "scalar_decay": SCALAR_DECAY}.items():
            body = ",\n".join(pool.imap(solve, [(law, c) for c in cases]))
            text = f'{{"schema":1,"law":"{law}","cases":[\n{body}\n]}}\n'
            path = FOLDER / f"{law}.json"
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            same = path.exists() and path.read_text() == text
            differs |= not same
            print(f"{path.name}: {len(cases)} cases, {len(text) // 1024} KB{'' if same else ', differs from the kept file'}")
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
