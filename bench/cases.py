"""What `make bench` times: plain data, in the order of the table."""

WIDTH = 512  # heads times head size; for scan, channels
STATE = 16  # numbers in the state of one channel of an S6 scan
WINDOW = 256
CACHE = 2048
VARIANTS = {
    "attention": ("causal",),
    "scalar_decay": ("linear", "fixed", "gated", "mlstm"),
    "channel_decay": ("gla", "rwkv6"),
    "delta": ("plain", "gated", "kda", "rwkv7"),
    "scan": ("real", "complex", "s6"),
}
# The variant of the long sequence with one head.
LONG = {"attention": "causal", "scalar_decay": "gated", "channel_decay": "gla", "delta": "gated", "scan": "s6"}
LONG_LENGTH = 16384
DIRECTIONS = ("forward", "forward+backward")


def case(subject, variant, direction, T, K, threads, H=None):
    V = {"s6": STATE, "real": 1, "complex": 1}.get(variant, K)
    return {"subject": subject, "variant": variant, "direction": direction, "B": 1, "T": T, "H": H or WIDTH // K,
            "K": K, "V": V, "S": CACHE if direction == "step" else T, "threads": threads, "window": WINDOW}


def suite(threads, quick=False, lengths=None, sizes=None):
    """All cases for one thread count. quick: one length and one head size. `lengths` and `sizes` are timed instead of the usual
    ones; a step is of length 1, and the long sequence is there if its length is."""
    sizes = sizes or ((64,) if quick else (64, 128))
    usual = (2048,) if quick else (512, 2048, 8192)
    wanted = lengths or (1, *usual, *(() if quick else (LONG_LENGTH,)))
    several = [T for T in wanted if T not in (1, LONG_LENGTH)]
    cases = []
    for subject, variants in VARIANTS.items():
        # A scan has channels, so that head sizes make no difference.
        for K in sizes[:1] if subject == "scan" else sizes:
            cases += [case(subject, v, d, T, K, threads) for v in variants for d in DIRECTIONS for T in several]
            if subject == "attention":
                cases += [case(subject, "window", d, T, K, threads) for d in DIRECTIONS for T in several[-1:]]
            if 1 in wanted:
                cases += [case(subject, v, "step", 1, K, threads) for v in variants]
        if LONG_LENGTH in wanted:
            # One long sequence with one head: there is nothing to split but the sequence itself.
            cases += [case(subject, LONG[subject], d, LONG_LENGTH, 64, threads, H=1) for d in DIRECTIONS]
    return cases


def chosen(cases, **only):
    """The cases whose fields have one of the given values; a field that is None may have any."""
    return [c for c in cases if all(values is None or c[field] in values for field, values in only.items())]


def small(c):
    """The case at a size that the float64 law does in no time, for comparing outputs."""
    step = c["direction"] == "step"
    return c | {"B": 2, "T": 1 if step else 256, "H": 2, "S": 100 if step else 256, "window": 32}


def name(c):
    """Everything about a case but its thread count, as one short line."""
    length = f"S={c['S']}" if c["direction"] == "step" and c["subject"] == "attention" else f"T={c['T']}"
    size = f"{c['H'] * c['K']}x{c['V']}" if c["subject"] == "scan" else f"{c['H']}x{c['K']}"
    return f"{c['subject']} {c['variant']} {c['direction']} {length} {size}"
