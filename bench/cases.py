"""What `make bench` times: plain data, in the order of the table."""

WIDTH = 512  # heads times head size
WINDOW = 256
CACHE = 2048
VARIANTS = {"attention": ("causal",), "scalar_decay": ("linear", "fixed", "gated", "mlstm")}
LONG = {"attention": "causal", "scalar_decay": "gated"}
DIRECTIONS = ("forward", "forward+backward")


def case(subject, variant, direction, T, K, threads, H=None):
    return {"subject": subject, "variant": variant, "direction": direction, "B": 1, "T": T, "H": H or WIDTH // K,
            "K": K, "V": K, "S": CACHE if direction == "step" else T, "threads": threads, "window": WINDOW}


def suite(threads, quick, law):
    """All cases for one thread count; quick: one length and one head size."""
    lengths, sizes = ((2048,), (64,)) if quick else ((512, 2048, 8192), (64, 128))
    cases = []
    for subject, variants in VARIANTS.items():
        for K in sizes:
            cases += [case(subject, v, d, T, K, threads) for v in variants for d in DIRECTIONS for T in lengths]
            if subject == "attention":
                cases += [case(subject, "window", d, 2048 if quick else 8192, K, threads) for d in DIRECTIONS]
            cases += [case(subject, v, "step", 1, K, threads) for v in variants]
        if not quick:
            # One long sequence with one head: there is nothing to split but the sequence itself.
            cases.append(case(subject, LONG[subject], "forward", 16384, 64, threads, H=1))
    return [c for c in cases if law in (None, c["subject"])]


def small(c):
    """The case at a size that the float64 law does in no time, for comparing outputs."""
    step = c["direction"] == "step"
    return c | {"B": 2, "T": 1 if step else 256, "H": 2, "S": 100 if step else 256, "window": 32}


def name(c):
    """Everything about a case but its thread count, as one short line."""
    length = f"S={c['S']}" if c["direction"] == "step" and c["subject"] == "attention" else f"T={c['T']}"
    return f"{c['subject']} {c['variant']} {c['direction']} {length} {c['H']}x{c['K']}"

