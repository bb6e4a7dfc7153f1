"""What Isomer sets out to reach: ratios peer time / our time, shares of the sgemm peak, and ratios between our own rows."""

# Share of the sgemm peak of causal attention, forward, by head size and length.
PEAK = {(64, 2048): 0.70, (64, 8192): 0.75, (128, 2048): 0.75, (128, 8192): 0.82}
# Least ratio to a peer by law and variant: of the forward, and of forward + backward. A variant that is missing has no target.
LINEAR = {"ort": (2.0, None), "ggml": (2.0, None), "torch_cpu": (2.0, 2.0)}
RATIO = {
    ("scalar_decay", "linear"): LINEAR,
    ("scalar_decay", "fixed"): LINEAR,
    ("scalar_decay", "gated"): LINEAR,
    ("scalar_decay", "mlstm"): {"torch_cpu": (3.0, 4.0)},
    ("channel_decay", "gla"): {"ort": (1.8, None), "ggml": (1.8, None), "torch_cpu": (2.0, 2.0)},
    ("delta", "gated"): {"ort": (2.0, None), "ggml": (2.0, None), "torch_cpu": (4.0, 5.0)},
    ("delta", "kda"): {"ggml": (1.8, None)},
    ("delta", "rwkv7"): {"ggml": (1.5, None)},
    ("scan", "s6"): {"ggml": (2.0, None), "torch_cpu": (10.0, 20.0)},
}
STEP = {"ggml": 1.0}
# Laws with a state in a matrix: the flops of their forward rows are those that the recurrence itself has, a write and reads of the
# state, and no chunk form goes below.
MATRIX = {"scalar_decay", "channel_decay", "delta"}
BACKWARD = {"attention": 2.7}  # at most this many times the forward; the others:
BACKWARD_ELSE = 3.0
SCALING = 1.7


def peak(case):
    if (case["subject"], case["variant"], case["direction"]) != ("attention", "causal", "forward") or case["H"] == 1:
        return None
    return PEAK.get((case["K"], case["T"]))


def ratio(case, peer):
    """The least ratio to a peer, or None where none is set."""
    if case["direction"] == "step":
        return STEP.get(peer)
    if case["subject"] == "attention":
        return attention(case, peer)
    forward, both = RATIO.get((case["subject"], case["variant"]), {}).get(peer, (None, None))
    return forward if case["direction"] == "forward" else both


def at_peak(case, ratio, seconds, flops, peak):
    """The ratio that a law with a state in a matrix would have at the sgemm peak with no more flops than its recurrence: beyond it
    no form gets. `ratio` was measured with `seconds` a call of `flops`. None where the recurrence is no bound."""
    if None in (ratio, seconds, flops, peak) or case["subject"] not in MATRIX or case["direction"] != "forward":
        return None
    return ratio * seconds * peak * 1e9 / flops


def attention(case, peer):
    """These depend on the length."""
    if case["variant"] == "window":
        return 2.2 if peer == "torch_cpu" and case["T"] == 8192 else None
    if peer == "torch_cpu":
        return 1.1 if case["T"] >= 2048 else 1.5
    return {"ort": 1.3, "ggml": 2.0}.get(peer)


def others(case):
    """Cases of our own that a case is compared with, timed in the same rounds: {what is compared: other case}."""
    found = {}
    if case["direction"] == "forward+backward":
        found["backward / forward"] = case | {"direction": "forward"}
    if case["H"] == 1 and case["threads"] == 2:
        found["two threads against one"] = case | {"threads": 1}
    return found


def judge(case, what, ratio):
    """The value that a comparison of others() gives, its limit, and whether it is met. `ratio` is the other's time / the case's."""
    if what == "backward / forward":
        value, limit = 1 / ratio - 1, BACKWARD.get(case["subject"], BACKWARD_ELSE)
        return value, f"<= {limit}", value <= limit
    return ratio, f">= {SCALING}", ratio >= SCALING
