"""The models that bench/train times, and what is to be reached: data."""

SHAPES = ((16, 512), (2, 4096))  # sequences, tokens of each
MODEL = {"layers": 4, "width": 256, "vocabulary": 8192}
STREAM = {"layers": 4, "width": 512, "vocabulary": 8192, "prompt": 128, "tokens": 64}

# Least ratio of tokens/s to PyTorch's better mode, for each of SHAPES. These presets have a twin in peers/torch_models.py.
RATIO = {
    "softmax": (1.45, 1.3),
    "linear-elu": (1.4, 1.25),
    "retnet": (1.4, 1.25),
    "gla": (1.4, 1.25),
    "mlstm": (1.5, 1.6),
    "gated-deltanet": (1.7, 1.9),
    "mamba": (8.0, 8.0),
}
UTILISATION = 0.7  # of the sgemm peak, without an S6 scan
S6 = ("mamba",)
STREAM_RATIO = {"float32": 1.4, "bf16": 2.5}  # to PyTorch with float32 weights
STREAM_PRESETS = ("softmax", "gla")
READ_SHARE = {"float32": 0.85}  # of the read speed; bfloat16 is to be faster than float32, whatever its share


def training(preset, shape, threads):
    return MODEL | {"preset": preset, "B": shape[0], "T": shape[1], "threads": threads}


def streaming(preset, weights, threads):
    return STREAM | {"preset": preset, "weights": weights, "threads": threads}


def train_targets(case):
    """(least utilisation, least ratio), None where there is none."""
    ratios = RATIO.get(case["preset"])
    shape = (case["B"], case["T"])
    return (None if case["preset"] in S6 else UTILISATION,
            ratios[SHAPES.index(shape)] if ratios and shape in SHAPES else None)


def name(case):
    if "B" in case:
        return f"{case['preset']} {case['B']}x{case['T']}"
    return f"{case['preset']} {case['weights']}"
