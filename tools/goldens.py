#!/usr/bin/env python3
"""High-precision goldens for the laws `attention` and `scalar_decay`.

    python3 tools/goldens.py            writes tests/goldens/{attention,scalar_decay}.json
    python3 tools/goldens.py --check    regenerates them and exits 1 if a kept file differs

Needs mpmath. Every law is its definition: explicit sums over the visible keys, nothing rescaled, at 120 digits. Gradients are
central differences (step 1e-40) of sum(grad_o * o) + sum(grad_final_X * final_X), so they rest on no derivation. Inputs are
exact in float32 and as decimals; outputs are rounded to the nearest double; -inf is the string "-inf".

Readings of the contract where it leaves a choice:
 1. A gate at position r acts on what was written before r: the own key of a token is never decayed.
 2. attention `sum`: eps is added to the true sum of weights; log_sum is the logarithm of that sum without eps.
 3. A key of weight zero (behind a gate of -inf) is visible: `count` and `gate` count it.
 4. Without causality the query t has position t whatever S is; a bidirectional window is used here only with S = T.
 5. scalar_decay: an absent initial state, log_input or log_decay is zero; `sum` and `max` take den = scale * q.n.
 6. `max`: states outside are true * exp(-m), m_t = max(log_decay_t + m_{t-1}, log_input_t), m_0 = initial_max; 0 if only
    initial_max is absent, -inf if every initial state is (then no sequence is empty here).
 7. causal=false yields the final states too: the sums over the whole sequence, with gradients.
 8. The gradient at a gate of -inf is 0; none is written for initial_max and initial_count. Without tokens final = initial.
"""

import argparse
import itertools
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
STATES = {"none": "state", "sum": "state norm", "max": "state norm max", "subtract": "state norm value_sum count"}
NO_GRADIENT = {"offsets", "initial_max", "initial_count"}


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
    return [(b, 0, x["q"].shape[1], b) for b in range(x["q"].shape[0])]


def common(x, options):
    """q, k, v, the number of heads, scale, causal."""
    q, k, v = x["q"], x["k"], x["v"]
    scale = mpf(options["scale"]) if "scale" in options else 1 / sqrt(mpf(q.shape[-1]))
    return q, k, v, max(q.shape[2], k.shape[2], v.shape[2]), scale, options.get("causal", "true") == "true"


def attention(x, options, _=None):
    q, k, v, H, scale, causal = common(x, options)
    B, T, S, V = *q.shape[:2], k.shape[1], v.shape[-1]
    window, sinks, order = (int(options.get(name, default)) for name, default in (("window", 0), ("sinks", 0), ("order", 2)))
    normaliser, exp_kernel = options.get("normaliser", "sum"), options.get("kernel", "exp") == "exp"
    eps = mpf(options.get("eps", {"l2": "1e-12", "rms": "1e-6", "layer": "1e-5"}.get(normaliser, 0)))
    out = {"o": Tensor((B, T, H, V))} | ({"log_sum": Tensor((B, T, H))} if exp_kernel and normaliser == "sum" else {})

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
        for t, h in itertools.product(range(first, end), range(H)):
            i = t + S - T if causal else t
            seen = [j for j in range(first, end + S - T) if visible(i, j, first)]
            weights = [weight(b, i, j, h, scale * dot(q.head(b, t, h, H), k.head(b, j, h, H))) for j in seen]
            num = weighted(weights, [v.head(b, j, h, H) for j in seen], V)
            out["o"][b, t, h] = normalise(num, sum(weights), len(seen), b, t, h)
            if "log_sum" in out:
                out["log_sum"][b, t, h] = log(sum(weights))
    return out


def scalar_decay(x, options, fixed=None):
    """`fixed`: outputs whose final_max is the scale of the final states, instead of this call's own."""
    q, k, v, H, scale, causal = common(x, options)
    B, T, K, V, N = *q.shape[:2], k.shape[-1], v.shape[-1], len(sequences(x))
    normaliser, eps = options.get("normaliser", "none"), mpf(options.get("eps", 0))
    shapes = {"state": (N, H, K, V), "norm": (N, H, K), "max": (N, H), "value_sum": (N, H, V), "count": (N,)}
    out = {"o": Tensor((B, T, H, V))} | {f"final_{name}": Tensor(shapes[name]) for name in STATES[normaliser].split()}
    initial = {name: x.get(f"initial_{name}", Tensor(shapes[name])) for name in shapes}

    def gate(name, b, t, h):
        if name not in x:
            return mpf(0)
        return x[name][b, t, h] if len(x[name].shape) == 3 else x[name][(h,)]

    def sums(b, first, end, n, h):
        """True Σ w k vᵀ, Σ w k, Σ v and the count over the tokens [first, end), on top of the initial states."""
        decay = [sum((gate("log_decay", b, r, h) for r in range(j + 1, end)), mpf(0)) for j in range(first - 1, end)]
        start = exp(decay[0] + initial["max"][n, h])
        weights = [exp(decay[j - first + 1] + gate("log_input", b, j, h)) for j in range(first, end)]
        keys, values = ([tensor.head(b, j, h, H) for j in range(first, end)] for tensor in (k, v))
        lines = [weighted([w * key[a] for w, key in zip(weights, keys)], values, V) for a in range(K)]
        state = [[start * s + y for s, y in zip(initial["state"][n, h, a], lines[a])] for a in range(K)]
        norm = [start * a + s for a, s in zip(initial["norm"][n, h], weighted(weights, keys, K))]
        value_sum = [a + s for a, s in zip(initial["value_sum"][n, h], weighted([mpf(1)] * len(values), values, V))]
        return state, norm, value_sum, initial["count"][(n,)] + len(values)

    def read(query, state, norm, value_sum, count):
        num, den = [scale * dot(query, column) for column in zip(*state)], scale * dot(query, norm)
        if normaliser == "subtract":
            return [u / count + (y - den * u / count) / count for y, u in zip(num, value_sum)]
        divisor = {"none": mpf(1), "sum": den + eps, "max": max(abs(den), mpf(1)) + eps}[normaliser]
        return [y / divisor for y in num]

    for (b, first, end, n), h in itertools.product(sequences(x), range(H)):
        for t in range(first, end):
            out["o"][b, t, h] = read(q.head(b, t, h, H), *sums(b, first, t + 1 if causal else end, n, h))
        shrink = mpf(1)
        if normaliser == "max":
            m = initial["max"][n, h] if any(name.startswith("initial_") for name in x) else -mpf(INF)
            for t in range(first, end):
                m = max(gate("log_decay", b, t, h) + m, gate("log_input", b, t, h))
            out["final_max"][n, h] = m
            shrink = exp(-(fixed or out)["final_max"][n, h])
        state, norm, value_sum, count = sums(b, first, end, n, h)
        out["final_state"][n, h] = [shrink * y for line in state for y in line]
        if normaliser != "none":
            out["final_norm"][n, h] = [shrink * y for y in norm]
        if normaliser == "subtract":
            out["final_value_sum"][n, h], out["final_count"][(n,)] = value_sum, count
    return out


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


def inputs(law, case):
    """Seeded multiples of 1/1024. `extra` names the optional tensors, `times` scales one, `put` sets single entries."""
    draw = random.Random(f"{law}/{case['name']}")
    B, T, K, V = (case.get(letter, default) for letter, default in zip("BTKV", (1, 6, 3, 2)))
    S, heads = case.get("S", T), case.get("heads", (2, 2, 2))
    H, N, x = max(heads), len(case["offsets"]) - 1 if "offsets" in case else B, {}
    shapes = {
        "q": (B, T, heads[0], K), "k": (B, S, heads[1], K), "v": (B, S, heads[2], V), "grad_o": (B, T, H, V), "gate": (B, T, H),
        "log_forget": (B, S, H), "log_decay": (B, T, H), "log_decay_head": (H,), "log_input": (B, T, H),
        "initial_max": (N, H), "initial_count": (N,), "state": (N, H, K, V), "norm": (N, H, K), "value_sum": (N, H, V),
    }  # fmt: skip
    ranges = {"gate": (0.05, 0.95), "initial_count": (1, 5)}
    ranges |= dict.fromkeys(("log_forget", "log_decay", "log_decay_head"), (-1.5, 0))
    if law == "scalar_decay" and case["options"].get("normaliser") == "sum":  # keeps den away from 0
        ranges |= dict.fromkeys(("q", "k", "initial_norm"), (0.1, 1.5))
    for name in ["q", "k", "v", *case.get("extra", "").split(), *case.get("grads", "grad_o").split()]:
        shape = shapes.get(name) or shapes[name.removeprefix("grad_final_").removeprefix("initial_")]
        low, high = ranges.get(name, (-1.5, 1.5))
        factor, grid = case.get("times", {}).get(name, 1), 1 if name == "initial_count" else 1024
        values = [factor * (low + (high - low) * draw.random()) for _ in range(math.prod(shape))]
        x[name.removesuffix("_head")] = Tensor(shape, [mpf(round(grid * value)) / grid for value in values])
    for name, entries in case.get("put", {}).items():
        for index, value in entries.items():
            x[name][index] = mpf(value)
    if "offsets" in case:
        x["offsets"] = Tensor((N + 1,), case["offsets"])
    return x


def solve(job):
    law, case = job
    law, x, options = globals()[law], inputs(law, case), case["options"]
    outputs = law(x, options)
    outputs |= gradients(law, x, options, outputs)
    groups = [{name: tensor.json() for name, tensor in group.items()} for group in (x, outputs)]
    entry = {"name": case["name"], "options": options, "inputs": groups[0], "outputs": groups[1]}
    return json.dumps(entry, separators=(",", ":"), allow_nan=False)


def case(name, options="", **rest):
    return {"name": name, "options": dict(word.split("=") for word in options.split()), **rest}


FORGET = {"log_forget": {(0, 2, 0): -INF, (0, 5, 0): -50, (0, 3, 1): -1e4, (0, 6, 1): 2.5}}
LONG = {"T": 8, "V": 3, "extra": "log_forget", "put": FORGET}
LOGITS, PACKED = {"K": 4, "times": {"q": 60}}, {"T": 8, "offsets": [0, 3, 3, 4, 8]}
TAYLOR = ("0 sum", "1 l2", "1 none", "2 sum", "2 l2", "2 rms", "2 layer", "2 count", "4 sum", "4 l2", "4 none")

ATTENTION = [
    *(case(f"exp_{n}", f"normaliser={n}", V=3) for n in ("sum", "l2", "rms", "layer", "count", "none")),
    *(case(f"taylor{p}_{n}", f"kernel=taylor order={p} normaliser={n}", V=3) for p, n in map(str.split, TAYLOR)),
    *(case(f"{kernel}_gate", f"kernel={kernel} normaliser=gate", extra="gate") for kernel in ("exp", "taylor")),
    *(case(name, options, T=7) for name, options in {
        "bidirectional": "causal=false", "bidirectional_taylor4": "causal=false kernel=taylor order=4",
        "bidirectional_window": "causal=false window=3", "bidirectional_window_count": "causal=false window=2 normaliser=count",
        "window1": "window=1", "window3": "window=3", "window50": "window=50", "window_taylor2": "window=3 kernel=taylor",
        "window_sinks": "window=3 sinks=2", "window_sinks_count": "window=3 sinks=2 normaliser=count",
    }.items()),
    case("window_sinks_forget", "window=3 sinks=1", **LONG), case("forget_extreme_taylor2", "kernel=taylor", **LONG),
    case("window_sinks_forget_taylor2", "window=2 sinks=2 kernel=taylor normaliser=l2", **LONG),
    *(case(f"forget_extreme_{n}", f"normaliser={n}", **LONG) for n in ("sum", "l2", "layer", "count", "none")),
    case("forget_extreme_gate", "normaliser=gate", T=8, extra="log_forget gate", put=FORGET),
    case("forget_first", extra="log_forget", T=4, put={"log_forget": {(0, 0, 0): -INF, (0, 0, 1): 4}}),
    case("forget", extra="log_forget"), case("bidirectional_layer", "causal=false normaliser=layer", V=5, T=5),
    *(case(f"bidirectional_{t}_{s}", "causal=false", T=t, S=s) for t, s in ((3, 7), (7, 3))),
    *(case(f"logits_{n}", f"normaliser={n}", **LOGITS) for n in ("sum", "l2", "rms", "none")),
    case("logits_bidirectional", "causal=false", **LOGITS), case("logits_forget", **LONG, **LOGITS),
    *(case(f"more_keys_{n}", f"normaliser={n}", T=4, S=7) for n in ("sum", "count")),
    case("more_keys_window_sinks_forget", "window=3 sinks=1", T=4, S=9, extra="log_forget"),
    case("grouped_421", heads=(4, 2, 1), T=5), case("grouped_224", heads=(2, 2, 4), T=5), case("batch_odd", B=2, T=5, K=5, V=1),
    case("grouped_412_gate", "normaliser=gate", heads=(4, 1, 2), T=5, extra="gate log_forget"),
    case("packed", **PACKED), case("packed_bidirectional_count", "causal=false normaliser=count", **PACKED),
    case("packed_window_sinks_forget", "window=2 sinks=1", extra="log_forget", **PACKED),
    *(case(f"t1_{n}", f"normaliser={n}", T=1, V=3, extra="log_forget") for n in ("sum", "layer")),
    *(case(f"scale_eps_{n}", f"scale=0.75 eps=0.5 normaliser={n}", times={"v": 0.6}) for n in ("sum", "l2", "rms", "layer")),
    case("scale_eps_taylor2", "scale=-0.25 eps=0.5 kernel=taylor"), case("taylor1_sum", "kernel=taylor order=1", times={"q": 0.3}),
]

DECAYS = {"log_decay": {(0, 1, 0): -50, (0, 3, 0): -INF, (0, 5, 0): 0, (0, 2, 1): -1e4, (0, 4, 1): 0, (0, 6, 1): -INF}}
INPUTS = {"log_input": {(0, 0, 0): 80, (0, 2, 0): -80, (0, 5, 0): 80, (0, 1, 1): -80, (0, 3, 1): 80, (0, 6, 1): -80}}
MAXIMA = {"initial_max": {(0, 0): -40, (0, 1): 60, (1, 0): 0, (1, 1): -80}, "log_input": {(1, 2, 1): -80}}
ZERO_ONE = {"log_decay": {(0,): -INF, (1,): 0}}
SHIFTED = {"k": {(0, t, h, 0): 40 + t / 4 for t in range(6) for h in range(2)}}
GATED, GATES = ("none", "sum", "max"), "log_decay log_input"


def carried(name, normaliser, gates="", options="", start=None, **rest):
    """A case with the initial states `start` (every one unless said), and a gradient into every final one."""
    states = STATES[normaliser].split()
    extra = gates + "".join(f" initial_{state}" for state in (states if start is None else start.split()))
    grads = "grad_o" + "".join(f" grad_final_{state}" for state in states if state not in ("max", "count"))
    return case(name, f"normaliser={normaliser} {options}", extra=extra, grads=grads, **rest)


SCALAR_DECAY = [
    *(case(n, f"normaliser={n}", T=5) for n in STATES),
    *(case(f"{n}_decay_head", f"normaliser={n}", extra="log_decay_head", T=5) for n in GATED),
    *(case(f"{n}_decay_0_1", f"normaliser={n}", extra="log_decay_head", T=4, put=ZERO_ONE) for n in GATED),
    *(case(f"{n}_gates", f"normaliser={n}", extra=GATES, K=4, V=3) for n in GATED),
    *(case(f"{n}_input_80", f"normaliser={n}", extra="log_input", T=7, put=INPUTS) for n in GATED),
    *(carried(f"{n}_carried", n, T=4) for n in STATES),
    *(carried(f"{n}_gates_carried", n, GATES) for n in GATED),
    *(carried(f"{n}_decay_head_carried", n, "log_decay_head", T=4) for n in GATED),
    *(carried(f"{n}_extreme_decay", n, "log_decay", T=8, put=DECAYS) for n in GATED),
    *(carried(f"{n}_first_decay_zero", n, "log_decay", T=3, put={"log_decay": {(0, 0, 0): -INF}}) for n in GATED),
    *(carried(f"{n}_positive_decay", n, "log_decay", T=5, put={"log_decay": {(0, 1, 0): 1.5, (0, 4, 1): 3}}) for n in GATED),
    *(carried(f"{n}_packed_carried", n, K=2, **PACKED) for n in STATES),
    *(carried(f"{n}_grouped_421", n, heads=(4, 2, 1), T=3, K=2) for n in STATES),
    *(carried(f"{n}_grouped_224", n, GATES if n in GATED else "", heads=(2, 2, 4), T=3, K=2) for n in STATES),
    *(carried(f"{n}_t1", n, T=1) for n in STATES), case("subtract_t1_alone", "normaliser=subtract", T=1),
    *(case(f"{n}_packed", f"normaliser={n}", extra=GATES, T=8, offsets=[0, 3, 4, 8]) for n in GATED),
    *(case(f"max_queries_{f}", "normaliser=max", extra=GATES, times={"q": f}) for f in (0.25, 20)),
    *(carried(f"{n}_scale_eps", n, GATES, "eps=0.25 scale=0.75", T=5) for n in ("sum", "max")),
    *(carried(f"{n}_scale", n, "", "scale=-1.25", T=4) for n in ("none", "subtract")),
    *(carried(f"global_{n}", n, "", "causal=false", start="") for n in ("none", "sum", "subtract")),
    case("global_none_grouped_421", "causal=false", extra="log_input", heads=(4, 2, 1), T=5),
    case("global_subtract_packed", "causal=false normaliser=subtract", **PACKED),
    carried("max_extreme_gates", "max", GATES, T=8, put=DECAYS | INPUTS), carried("subtract_shifted_keys", "subtract", put=SHIFTED),
    carried("max_extreme_scale", "max", GATES, B=2, T=3, put=MAXIMA), carried("max_t0", "max", T=0),
    carried("max_no_initial_max", "max", GATES, start="state norm"), case("none_grouped_142", heads=(1, 4, 2), T=4),
    case("none_final_only", extra=f"{GATES} initial_state", grads="grad_final_state", T=5),
    carried("sum_batch_odd", "sum", "log_decay", B=2, T=3, K=5, V=1), carried("none_packed_empty", "none", start="", **PACKED),
]


def main():
    parser = argparse.ArgumentParser(description="Regenerate the goldens of attention and scalar_decay.")
    parser.add_argument("--check", action="store_true", help="compare with the kept files, write nothing")
    check, differs = parser.parse_args().check, False
    with multiprocessing.Pool(2) as pool:
        for law, cases in {"attention": ATTENTION, "scalar_decay": SCALAR_DECAY}.items():
            body = ",\n".join(pool.imap(solve, [(law, c) for c in cases]))
            path, text = FOLDER / f"{law}.json", f'{{"schema":1,"law":"{law}","cases":[\n{body}\n]}}\n'
            if not check:
                path.write_text(text)
            same = path.exists() and path.read_text() == text
            differs |= not same
            print(f"{path.name}: {len(cases)} cases, {len(text) // 1024} KB{'' if same else ', differs from the kept file'}")
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
