"""What Isomer sets out to reach: ratios peer time / our time, shares of the sgemm peak, and ratios between our own rows."""

# Share of the sgemm peak of causal attention, forward, by head size and length.
PEAK = {(64, 2048): 0.70, (64, 8192): 0.75, (128, 2048): 0.75, (128, 8192): 0.82}
BACKWARD = {"attention": 2.7, "scalar_decay": 3.0}
SCALING = 1.7


def peak(case):
    if (case["subject"], case["variant"], case["direction"]) != ("attention", "causal", "forward") or case["H"] == 1:
        return None
    return PEAK.get((case["K"], case["T"]))


def ratio(case, peer):
    """The least ratio to a peer, or None where none is set."""
    direction = case["direction"]
    if direction == "step":
        return 1.0 if peer == "ggml" else None
    if case["subject"] == "attention":
        if case["variant"] == "window":
            return 2.2 if peer == "torch_cpu" and case["T"] == 8192 else None
        if peer == "torch_cpu":
            return 1.1 if case["T"] >= 2048 else 1.5
        return {"ort": 1.3, "ggml": 2.0}.get(peer)
    if case["variant"] == "mlstm":
        return (3.0 if direction == "forward" else 4.0) if peer == "torch_cpu" else None
    return 2.0


def between_rows(results):
    """Targets that compare our own rows: (text, value, limit, met). `results` is a list of (case, our median seconds)."""
    ours = {tuple(sorted(case.items())): seconds for case, seconds in results}

    def find(case, **changes):
        return ours.get(tuple(sorted((case | changes).items())))

    for case, seconds in results:
        where = f"{case['subject']} {case['variant']} T={case['T']} {case['H']}x{case['K']}, threads {case['threads']}"
        forward = find(case, direction="forward")
        if case["direction"] == "forward+backward" and forward:
            value, limit = seconds / forward - 1, BACKWARD[case["subject"]]
            yield f"backward / forward: {where}", value, f"<= {limit}", value <= limit
        two = find(case, threads=2)
        if case["H"] == 1 and case["threads"] == 1 and two:
            value = seconds / two
            yield f"two threads against one: {where}", value, f">= {SCALING}", value >= SCALING
