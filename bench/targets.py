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


def attention(case, peer):
    """These depend on the length."""
    if case["variant"] == "window":
        return 2.2 if peer == "torch_cpu" and case["T"] == 8192 else None
    if peer == "torch_cpu":
        return 1.1 if case["T"] >= 2048 else 1.5
    return {"ort": 1.3, "ggml": 2.0}.get(peer)


def between_rows(results):
    """Targets that compare our own rows: (text, value, limit, met). `results` is a list of (case, our median seconds)."""
    ours = {tuple(sorted(case.items())): seconds for case, seconds in results}

    def find(case, **changes):
        return ours.get(tuple(sorted((case | changes).items())))

    for case, seconds in results:
        where = f"{case['subject']} {case['variant']} T={case['T']} {case['H']}x{case['K']}, threads {case['threads']}"
        forward = find(case, direction="forward")
        if case["direction"] == "forward+backward" and forward:
            value, limit = seconds / forward - 1, BACKWARD.get(case["subject"], BACKWARD_ELSE)
            yield f"backward / forward: {where}", value, f"<= {limit}", value <= limit
        two = find(case, threads=2)
        if case["H"] == 1 and case["threads"] == 1 and two:
            value = seconds / two
            yield f"two threads against one, {case['direction']}: {where}", value, f">= {SCALING}", value >= SCALING
