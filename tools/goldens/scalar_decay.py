"""scalar_decay.

Readings of the contract where it leaves a choice:
 1. A gate at position r acts on what was written before r: the own key of a token is never decayed.
 2. An absent initial state, log_input or log_decay is zero; `sum` and `max` take den = scale * q.n.
 3. `max`: states outside are true * exp(-m), m_t = max(log_decay_t + m_{t-1}, log_input_t), m_0 = initial_max; 0 if only
    initial_max is absent, -inf if every initial state is (then no sequence is empty here).
 4. causal=false yields the final states too: the sums over the whole sequence, with gradients.
"""

import itertools

from common import INF, PACKED, Tensor, case, common, dot, sequences, weighted
from mpmath import exp, mpf

NAME = "scalar_decay"
REQUIRED, GRADS = "q k v", "grad_o"
SHAPES = {
    "q": "B T Gq K", "k": "B T Gk K", "v": "B T Gv V", "o": "B T H V", "log_decay": "B T H", "log_decay:head": "H",
    "log_input": "B T H", "max": "N H", "count": "N", "state": "N H K V", "norm": "N H K", "value_sum": "N H V",
}  # fmt: skip
STATES = {"none": "state", "sum": "state norm", "max": "state norm max", "subtract": "state norm value_sum count"}


def ranges(case):
    positive = ("q", "k", "initial_norm") if case["options"].get("normaliser") == "sum" else ()  # keeps den away from 0
    gates = dict.fromkeys(("log_decay", "log_decay:head"), (-1.5, 0))
    return gates | {"initial_count": (1, 5)} | dict.fromkeys(positive, (0.1, 1.5))


def law(x, options, fixed=None):
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


CASES = [
    *(case(n, f"normaliser={n}", T=5) for n in STATES),
    *(case(f"{n}_decay_head", f"normaliser={n}", extra="log_decay:head", T=5) for n in GATED),
    *(case(f"{n}_decay_0_1", f"normaliser={n}", extra="log_decay:head", T=4, put=ZERO_ONE) for n in GATED),
    *(case(f"{n}_gates", f"normaliser={n}", extra=GATES, K=4, V=3) for n in GATED),
    *(case(f"{n}_input_80", f"normaliser={n}", extra="log_input", T=7, put=INPUTS) for n in GATED),
    *(carried(f"{n}_carried", n, T=4) for n in STATES),
    *(carried(f"{n}_gates_carried", n, GATES) for n in GATED),
    *(carried(f"{n}_decay_head_carried", n, "log_decay:head", T=4) for n in GATED),
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
