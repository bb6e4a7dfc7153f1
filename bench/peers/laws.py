"""What every peer must compute: inputs of a case, and the law itself in float64 with plain loops.

Tensors have the names and the layout [B, T, H, D] that `isomer apply` reads, so one file of inputs serves every worker.
A `scan` has no heads: H times K are its channels, and V is the state size of an S6 channel.
"""

import numpy as np

STATE_NAMES = {"mlstm": ("initial_norm", "initial_max"), "complex": ("initial_imag",)}


def outputs(case):
    """The names of what a case computes per token; each has a gradient coming in where gradients are wanted."""
    return {"real": ("h",), "complex": ("h", "h_imag")}.get(case["variant"], ("o",))


def inputs(case, seed=0):
    """Float32 inputs of a case. Gates are those of a trained model: slow decay, input gates around one."""
    draw = Draw(case, seed)
    x = getattr(draw, case["subject"])()
    if case["direction"] == "step" and case["subject"] != "attention":
        for name in ("initial_state", *STATE_NAMES.get(case["variant"], ())):
            x[name] = draw.normal(*state_shape(case, name))
    if case["direction"] == "forward+backward":
        B, T, H, K, V = (case[n] for n in "BTHKV")
        for name in outputs(case):
            x["grad_" + name] = draw.normal(B, T, H * K) if case["subject"] == "scan" else draw.normal(B, T, H, V)
    return x


def state_shape(case, name="initial_state"):
    B, H, K, V = (case[n] for n in "BHKV")
    if case["subject"] == "scan":
        return (B, H * K, V) if case["variant"] == "s6" else (B, H * K)
    return {"initial_norm": (B, H, K), "initial_max": (B, H)}.get(name, (B, H, K, V))


class Draw:
    """Random inputs, a function for each law."""

    def __init__(self, case, seed):
        self.case, self.variant = case, case["variant"]
        self.tokens, self.heads = (case["B"], case["T"]), (case["B"], case["T"], case["H"])
        self.rng = np.random.default_rng(seed)

    def normal(self, *shape):
        return self.rng.standard_normal(shape, dtype=np.float32)

    def unit(self, *shape):
        """Rows of length one."""
        x = self.normal(*shape)
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    def gate(self, *shape):
        """The logarithm of a slow decay."""
        return -np.log1p(np.exp(-3 - self.normal(*shape)))

    def attention(self):
        B, S, H, K, V = (self.case[n] for n in "BSHKV")
        S = S if self.case["direction"] == "step" else self.case["T"]
        return {"q": self.normal(*self.heads, K), "k": self.normal(B, S, H, K), "v": self.normal(B, S, H, V)}

    def scalar_decay(self):
        x = self.qkv()
        if self.variant == "fixed":
            x["log_decay"] = np.log1p(-np.exp2(-3.0 - np.arange(self.case["H"]) % 5)).astype(np.float32)
        elif self.variant != "linear":
            x["log_decay"] = self.gate(*self.heads)
        if self.variant == "mlstm":
            x["log_input"] = self.normal(*self.heads)
        return x

    def qkv(self):
        return {name: self.normal(*self.heads, self.case[size]) for name, size in zip("qkv", "KKV")}

    def channel_decay(self):
        K = self.case["K"]
        if self.variant == "rwkv6":
            return self.qkv() | {"log_decay": -np.exp(self.normal(*self.heads, K) - 3), "bonus": self.normal(self.case["H"], K)}
        return self.qkv() | {"log_decay": -np.log1p(np.exp(self.normal(*self.heads, K))) / 16}

    def delta(self):
        K = self.case["K"]
        x = {"q": self.unit(*self.heads, K), "k": self.unit(*self.heads, K), "v": self.normal(*self.heads, self.case["V"])}
        if self.variant == "rwkv7":
            x["log_decay"] = -0.6065 * sigmoid(self.normal(*self.heads, K) - 2)
            removed = self.unit(*self.heads, K)
            return x | {"a": -removed, "b": removed * sigmoid(self.normal(*self.heads, K))}
        x["beta"] = sigmoid(self.normal(*self.heads))
        if self.variant != "plain":
            x["log_decay"] = self.gate(*self.heads, *((K,) if self.variant == "kda" else ()))
        return x

    def scan(self):
        N, channels = self.case["V"], self.case["H"] * self.case["K"]
        if self.variant == "s6":
            step = np.log1p(np.exp(self.normal(*self.tokens, channels) - 4.5))
            x, b, c = (self.normal(*self.tokens, size) for size in (channels, N, N))
            # Around -1 ... -N, where Mamba starts, but not at multiples of one rate, which could be computed from one another.
            a = -np.arange(1, N + 1, dtype=np.float32) * np.exp(0.1 * self.normal(channels, N))
            return {"x": x, "step": step, "a": a, "b": b, "c": c}
        names = ("x", "x_imag", "angle") if self.variant == "complex" else ("x",)
        return {"log_decay": self.gate(*self.tokens, channels)} | {name: self.normal(*self.tokens, channels) for name in names}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference(case, x):
    """The outputs in float64, by name."""
    x = {name: array.astype(np.float64) for name, array in x.items()}
    laws = {"attention": _attention, "scalar_decay": _scalar_decay, "channel_decay": _channel_decay, "delta": _delta, "scan": _scan}
    found = laws[case["subject"]](case, x)
    return found if isinstance(found, dict) else {"o": found}


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
            state = np.exp(decay[:, t])[..., None, None] * state + outer(k, v)
            out[:, t] = read(state, q)
            continue
        before, top = top, np.maximum(decay[:, t] + top, x["log_input"][:, t])
        forget, write = np.exp(decay[:, t] + before - top), np.exp(x["log_input"][:, t] - top)
        state = forget[..., None, None] * state + outer(write[..., None] * k, v)
        norm = forget[..., None] * norm + write[..., None] * k
        scale = np.maximum(np.abs((norm * q).sum(-1)), np.exp(-top))
        out[:, t] = read(state, q) / scale[..., None]
    return out


def outer(k, v):
    return k[..., :, None] * v[..., None, :]


def read(state, q):
    return np.einsum("bhk,bhkv->bhv", q, state)


def _channel_decay(case, x):
    state = x.get("initial_state", np.zeros(state_shape(case)))
    out = np.empty(x["v"].shape)
    for t in range(case["T"]):
        q, k, v = x["q"][:, t] / np.sqrt(case["K"]), x["k"][:, t], x["v"][:, t]
        if "bonus" in x:
            out[:, t] = read(state + outer(x["bonus"] * k, v), q)
        state = np.exp(x["log_decay"][:, t])[..., None] * state + outer(k, v)
        if "bonus" not in x:
            out[:, t] = read(state, q)
    return out


def _delta(case, x):
    state = x.get("initial_state", np.zeros(state_shape(case)))
    decay = np.exp(x.get("log_decay", np.zeros(x["q"].shape[:3])))
    if decay.ndim == 3:
        decay = decay[..., None]
    out = np.empty(x["v"].shape)
    for t in range(case["T"]):
        q, k, v = x["q"][:, t] / np.sqrt(case["K"]), x["k"][:, t], x["v"][:, t]
        if "a" in x:
            state = decay[:, t][..., None] * state + outer(x["b"][:, t], read(state, x["a"][:, t])) + outer(k, v)
        else:
            state = decay[:, t][..., None] * state
            state = state + outer(x["beta"][:, t][..., None] * k, v - read(state, k))
        out[:, t] = read(state, q)
    return out


def _scan(case, x):
    state = x.get("initial_state", np.zeros(state_shape(case)))
    if case["variant"] == "s6":
        out = np.empty(x["x"].shape)
        for t in range(case["T"]):
            step = x["step"][:, t][..., None]
            state = np.exp(step * x["a"]) * state + step * x["x"][:, t][..., None] * x["b"][:, t][:, None]
            out[:, t] = (state * x["c"][:, t][:, None]).sum(-1)
        return out
    factor = np.exp(x["log_decay"] + 1j * x.get("angle", 0))
    value, state = x["x"] + 1j * x.get("x_imag", 0), state + 1j * x.get("initial_imag", 0)
    out = np.empty(value.shape, np.complex128)
    for t in range(case["T"]):
        state = out[:, t] = factor[:, t] * state + value[:, t]
    return {"h": out.real} | ({"h_imag": out.imag} if case["variant"] == "complex" else {})


def error(got, want):
    """Largest difference as a share of the largest magnitude; NaN counts as infinite."""
    worst = np.max(np.abs(np.asarray(got, np.float64) - want)) / max(np.max(np.abs(want)), 1e-30)
    return float(worst) if np.isfinite(worst) else float("inf")
