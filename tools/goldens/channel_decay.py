"""channel_decay.

Readings of the contract where it leaves a choice:
 1. A gate at position r acts on what was written before r: the own key of a token is never decayed.
 2. read=before: an output at t sees what was written before t after the gates up to t - 1.
"""

import itertools

from common import INF, PACKED, Tensor, case, common, dot, sequences, weighted
from mpmath import exp, mpf

NAME = "channel_decay"
REQUIRED, GRADS = "q k v log_decay", "grad_o grad_final_state"
SHAPES = {
    "q": "B T Gq K", "k": "B T Gk K", "v": "B T Gv V", "o": "B T H V", "log_decay": "B T H K", "bonus": "H K", "state": "N H K V",
}  # fmt: skip


def ranges(_):
    return {"log_decay": (-1.5, 0)}


def law(x, options, _=None):
    q, k, v, H, scale, _ = common(x, options)
    B, T, K, V, N = *q.shape[:2], k.shape[-1], v.shape[-1], len(sequences(x))
    before = options.get("read", "after") == "before"
    out = {"o": Tensor((B, T, H, V)), "final_state": Tensor((N, H, K, V))}
    initial = x.get("initial_state", Tensor((N, H, K, V)))

    def state(b, first, end, n, h):
        """The state as explicit sums over the tokens [first, end), on top of the initial state."""
        lines, values = [], [v.head(b, j, h, H) for j in range(first, end)]
        for a in range(K):
            gates = [x["log_decay"][b, r, h, a] for r in range(first, end)]
            decay = [exp(sum(gates[j:], mpf(0))) for j in range(len(gates) + 1)]  # of what was there before token j
            weights = [k.head(b, first + j, h, H)[a] * decay[j + 1] for j in range(len(values))]
            lines.append([decay[0] * s + y for s, y in zip(initial[n, h, a], weighted(weights, values, V))])
        return lines

    for (b, first, end, n), h in itertools.product(sequences(x), range(H)):
        for t in range(first, end):
            query, key = q.head(b, t, h, H), k.head(b, t, h, H)
            lines = state(b, first, t if before else t + 1, n, h)
            o = [dot(query, column) for column in zip(*lines)]
            if before and "bonus" in x:
                own = sum((qa * u * ka for qa, u, ka in zip(query, x["bonus"][(h,)], key)), mpf(0))
                o = [y + own * value for y, value in zip(o, v.head(b, t, h, H))]
            out["o"][b, t, h] = [scale * y for y in o]
        out["final_state"][n, h] = [y for line in state(b, first, end, n, h) for y in line]
    return out


EXTREME = {
    (0, 1, 0, 0): -50, (0, 3, 0, 1): -INF, (0, 5, 0, 0): 0, (0, 2, 1, 1): -1e4, (0, 4, 1, 0): 0, (0, 6, 1, 1): -INF, (0, 6, 1, 0): -80,
}  # fmt: skip
ALL_ZERO = {(0, 2, h, a): -INF for h in range(2) for a in range(2)}
STRONG = {(0, t, h, a): -20 for t in range(4) for h in range(2) for a in range(2)}
POSITIVE = {(0, 1, 0, 0): 1.5, (0, 3, 1, 1): 3, (0, 2, 1, 0): 0.25}


def both(name, options="", extra="", **rest):
    """The case with either reading."""
    return [case(name, options, extra=extra, **rest), case(f"before_{name}", f"read=before {options}", extra=f"bonus {extra}", **rest)]


CASES = [
    *both("plain", T=5), *both("carried", extra="initial_state", T=5), *both("wide", T=4, K=5, V=3),
    *both("outputs_only", T=4, grads="grad_o"), *both("state_only", T=4, grads="grad_final_state", extra="initial_state"),
    *both("extreme", extra="initial_state", T=8, K=2, put={"log_decay": EXTREME}),
    *both("forgets_all", extra="initial_state", T=4, K=2, put={"log_decay": ALL_ZERO}),
    *both("strong", extra="initial_state", T=4, K=2, put={"log_decay": STRONG}),
    *both("positive", extra="initial_state", T=5, K=2, put={"log_decay": POSITIVE}),
    *both("packed", extra="initial_state", K=2, **PACKED), *both("packed_fresh", K=2, **PACKED),
    *both("grouped_421", heads=(4, 2, 1), T=3, K=2), *both("grouped_224", heads=(2, 2, 4), T=3, K=2, extra="initial_state"),
    *both("t1", T=1, extra="initial_state"), *both("t0", T=0, extra="initial_state"), *both("batch_odd", B=2, T=3, K=5, V=1),
    *both("scale", "scale=-0.75", T=4, extra="initial_state"),
    case("before_no_bonus", "read=before", T=4, extra="initial_state"),
]  # fmt: skip
