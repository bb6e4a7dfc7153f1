"""attention.

Readings of the contract where it leaves a choice:
 1. A gate at position r acts on what was written before r: the own key of a token is never decayed.
 2. `sum`: eps is added to the true sum of weights; log_sum is the logarithm of that sum without eps.
 3. A key of weight zero (behind a gate of -inf) is visible: `count` and `gate` count it.
 4. Without causality the query t has position t whatever S is; a bidirectional window is used here only with S = T.
"""

import itertools
import math

from common import INF, PACKED, Tensor, case, common, dot, sequences, weighted
from mpmath import exp, log, mpf, sqrt

NAME = "attention"
REQUIRED, GRADS = "q k v", "grad_o"
SHAPES = {"q": "B T Gq K", "k": "B S Gk K", "v": "B S Gv V", "o": "B T H V", "gate": "B T H", "log_forget": "B S H"}


def ranges(_):
    return {"gate": (0.05, 0.95), "log_forget": (-1.5, 0)}


def law(x, options, _=None):
    q, k, v, H, scale, causal = common(x, options)
    B, T, S, V = *q.shape[:2], k.shape[1], v.shape[-1]
    window, sinks, order = (int(options.get(name, default)) for name, default in (("window", 0), ("sinks", 0), ("order", 2)))
    clamp = mpf(options.get("clamp", INF))
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
            weights = [weight(b, i, j, h, min(clamp, scale * dot(q.head(b, t, h, H), k.head(b, j, h, H)))) for j in seen]
            num = weighted(weights, [v.head(b, j, h, H) for j in seen], V)
            out["o"][b, t, h] = normalise(num, sum(weights), len(seen), b, t, h)
            if "log_sum" in out:
                out["log_sum"][b, t, h] = log(sum(weights))
    return out


FORGET = {"log_forget": {(0, 2, 0): -INF, (0, 5, 0): -50, (0, 3, 1): -1e4, (0, 6, 1): 2.5}}
LONG = {"T": 8, "V": 3, "extra": "log_forget", "put": FORGET}
LOGITS = {"K": 4, "times": {"q": 60}}
TAYLOR = ("0 sum", "1 l2", "1 none", "2 sum", "2 l2", "2 rms", "2 layer", "2 count", "4 sum", "4 l2", "4 none")

CASES = [
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
    case("clamp", "clamp=0.25"), case("clamp_gate_forget", "clamp=0.5 normaliser=gate", extra="gate log_forget"),
    case("clamp_count_window", "clamp=-0.25 normaliser=count window=4 sinks=1", T=7), case("logits_clamp", "clamp=5", **LOGITS),
    case("clamp_taylor2_forget", "clamp=0.25 kernel=taylor normaliser=l2", **LONG),
]
