"""What every peer must compute: inputs of a case, and the law itself in float64 with plain loops.

Tensors have the names and the layout [B, T, H, D] that `isomer apply` reads, so one file of inputs serves every worker.
"""

import numpy as np


def inputs(case, seed=0):
    """Float32 inputs of a case. Gates are those of a trained model: slow decay, input gates around one."""
    rng = np.random.default_rng(seed)
    B, T, H, K, V = (case[x] for x in "BTHKV")
    step = case["direction"] == "step"
    S = case["S"] if step and case["subject"] == "attention" else T

    def normal(*shape):
        return rng.standard_normal(shape, dtype=np.float32)

    x = {"q": normal(B, T, H, K), "k": normal(B, S, H, K), "v": normal(B, S, H, V)}
    if case["subject"] == "scalar_decay":
        if case["variant"] == "fixed":
            x["log_decay"] = np.log1p(-np.exp2(-3.0 - np.arange(H) % 5)).astype(np.float32)
        elif case["variant"] != "linear":
            x["log_decay"] = -np.log1p(np.exp(-3.0 - normal(B, T, H)))
        if case["variant"] == "mlstm":
            x["log_input"] = normal(B, T, H)
        if step:
            x["initial_state"] = normal(B, H, K, V)
            if case["variant"] == "mlstm":
                x["initial_norm"], x["initial_max"] = normal(B, H, K), normal(B, H)
    if case["direction"] == "forward+backward":
        x["grad_o"] = normal(B, T, H, V)
    return x


def reference(case, x):
    """The output o [B, T, H, V] in float64."""
    x = {name: array.astype(np.float64) for name, array in x.items()}
    return (_attention if case["subject"] == "attention" else _scalar_decay)(case, x)


def log_decay(x):
    """The decay as [B, T, H], zero where the law has none."""
    gate = x.get("log_decay", np.zeros(1, x["q"].dtype))
    return np.ascontiguousarray(np.broadcast_to(gate, x["q"].shape[:3]))


def visible(case, T, S):
    """Which of S keys each of the last T positions sees: bool [T, S]."""
    i, j = np.arange(S - T, S)[:, None], np.arange(S)[None, :]
    return (j <= i) & (j > i - case["window"]) if case["variant"] == "window" else j <= i


def _attention(case, x):
    logits = np.einsum("bthk,bshk->bhts", x["q"], x["k"]) / np.sqrt(case["K"])
    logits[..., ~visible(case, *logits.shape[-2:])] = -np.inf
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return np.einsum("bhts,bshv->bthv", weights / weights.sum(-1, keepdims=True), x["v"])


def _scalar_decay(case, x):
    B, T, H, K, V = (case[n] for n in "BTHKV")
    state = x.get("initial_state", np.zeros((B, H, K, V))).copy()
    norm = x.get("initial_norm", np.zeros((B, H, K))).copy()
    top = x.get("initial_max", np.full((B, H), -np.inf)).copy()
    decay, out = log_decay(x), np.empty((B, T, H, V))
    for t in range(T):
        q, k, v = x["q"][:, t] / np.sqrt(K), x["k"][:, t], x["v"][:, t]
        if case["variant"] != "mlstm":
            state = np.exp(decay[:, t])[..., None, None] * state + k[..., None] * v[..., None, :]
            out[:, t] = np.einsum("bhk,bhkv->bhv", q, state)
            continue
        before, top = top, np.maximum(decay[:, t] + top, x["log_input"][:, t])
        forget, write = np.exp(decay[:, t] + before - top), np.exp(x["log_input"][:, t] - top)
        state = forget[..., None, None] * state + (write[..., None] * k)[..., None] * v[..., None, :]
        norm = forget[..., None] * norm + write[..., None] * k
        scale = np.maximum(np.abs((norm * q).sum(-1)), np.exp(-top))
        out[:, t] = np.einsum("bhk,bhkv->bhv", q, state) / scale[..., None]
    return out


def error(got, want):
    """Largest difference as a share of the largest magnitude; NaN counts as infinite."""
    worst = np.max(np.abs(np.asarray(got, np.float64) - want)) / max(np.max(np.abs(want)), 1e-30)
    return float(worst) if np.isfinite(worst) else float("inf")
