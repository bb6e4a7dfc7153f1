"""delta.

Readings of the contract where it leaves a choice:
 1. A gate at position r acts on what was written before r; the delta rule reads the decayed state, the low-rank rule the one before.
 2. l2norm is of each head's own vector, before the scale.
 3. The low-rank rule has no beta, the delta rule no a and b.
"""

import itertools

from common import INF, PACKED, Tensor, case, common, dot, sequences
from mpmath import exp, mpf, sqrt

NAME = "delta"
REQUIRED, GRADS = "q k v", "grad_o grad_final_state"
SHAPES = {
    "q": "B T Gq K", "k": "B T Gk K", "v": "B T Gv V", "o": "B T H V", "beta": "B T H", "log_decay": "B T H", "log_decay:key": "B T H K",
    "a": "B T H K", "b": "B T H K", "state": "N H K V",
}  # fmt: skip


def ranges(_):
    return {"log_decay": (-1.5, 0), "log_decay:key": (-1.5, 0), "beta": (0, 2), "k": (-0.8, 0.8), "a": (-0.8, 0.8), "b": (-0.8, 0.8)}


def law(x, options, _=None):
    q, k, v, H, scale, _ = common(x, options)
    B, T, K, V, N = *q.shape[:2], k.shape[-1], v.shape[-1], len(sequences(x))
    out = {"o": Tensor((B, T, H, V)), "final_state": Tensor((N, H, K, V))}
    initial = x.get("initial_state", Tensor((N, H, K, V)))

    def vector(tensor, b, t, h):
        row = tensor.head(b, t, h, H)
        if options.get("l2norm") != "true":
            return row
        return [y / sqrt(dot(row, row) + mpf("1e-6")) for y in row]

    def decays(b, t, h):
        if "log_decay" not in x:
            return [mpf(1)] * K
        gate = x["log_decay"][b, t, h]
        return [exp(g) for g in gate] if isinstance(gate, list) else [exp(gate)] * K

    def write(state, b, t, h):
        key, value, decay = vector(k, b, t, h), v.head(b, t, h, H), decays(b, t, h)
        kept = [[d * s for s in line] for d, line in zip(decay, state)]
        if "a" in x:
            read = [dot(x["a"][b, t, h], column) for column in zip(*state)]
            writer = x["b"][b, t, h]
            return [[s + w * u + y * z for s, u, z in zip(line, read, value)] for line, w, y in zip(kept, writer, key)]
        read = [dot(key, column) for column in zip(*kept)]
        beta = x["beta"][b, t, h]
        return [[s - beta * y * (u - z) for s, u, z in zip(line, read, value)] for line, y in zip(kept, key)]

    for (b, first, end, n), h in itertools.product(sequences(x), range(H)):
        state = [initial[n, h, a] for a in range(K)]
        for t in range(first, end):
            state = write(state, b, t, h)
            query = vector(q, b, t, h)
            out["o"][b, t, h] = [scale * dot(query, column) for column in zip(*state)]
        out["final_state"][n, h] = [y for line in state for y in line]
    return out


EXTREMES = [(1, 0, -50), (3, 0, -INF), (5, 0, 0), (2, 1, -1e4), (4, 1, 0), (6, 1, -INF), (7, 0, -80), (7, 1, 0.5)]
OF_HEAD = {"log_decay": {(0, t, h): g for t, h, g in EXTREMES}}
# Of every second key only, but for token 6, which forgets all.
OF_KEY = {"log_decay": {(0, t, h, a): g for t, h, g in EXTREMES for a in range(2) if t == 6 or a == t % 2}}
BETAS = {"beta": {(0, 0, 0): 0, (0, 1, 0): 2, (0, 2, 1): 1, (0, 3, 1): 2, (0, 4, 0): 0}}
KINDS = {"plain": "beta", "gated": "beta log_decay", "kda": "beta log_decay:key", "rwkv7": "a b log_decay:key"}


def cases(kind, extra):
    carried = f"{extra} initial_state"
    found = [
        case(kind, extra=extra, T=5), case(f"{kind}_carried", extra=carried, K=4), case(f"{kind}_wide", extra=extra, T=4, K=5, V=3),
        case(f"{kind}_l2norm", "l2norm=true", extra=carried, T=5), case(f"{kind}_outputs_only", extra=extra, T=4, grads="grad_o"),
        case(f"{kind}_state_only", extra=carried, T=4, grads="grad_final_state"), case(f"{kind}_packed", extra=carried, K=2, **PACKED),
        case(f"{kind}_packed_fresh", extra=extra, K=2, **PACKED), case(f"{kind}_grouped_421", extra=extra, heads=(4, 2, 1), T=3, K=2),
        case(f"{kind}_grouped_224", "l2norm=true", extra=carried, heads=(2, 2, 4), T=3, K=2), case(f"{kind}_t1", extra=carried, T=1),
        case(f"{kind}_t0", extra=carried, T=0), case(f"{kind}_batch_odd", extra=extra, B=2, T=3, K=5, V=1),
        case(f"{kind}_scale", "scale=-0.75", extra=carried, T=4),
    ]  # fmt: skip
    if kind != "plain":
        put = OF_HEAD if kind == "gated" else OF_KEY
        found += [case(f"{kind}_extreme{'_l2norm' if n else ''}", n, extra=carried, T=8, K=2, put=put) for n in ("", "l2norm=true")]
    if kind != "rwkv7":
        found.append(case(f"{kind}_beta_0_2", "l2norm=true", extra=carried, T=5, put=BETAS))
    return found


CASES = [one for kind, extra in KINDS.items() for one in cases(kind, extra)]
