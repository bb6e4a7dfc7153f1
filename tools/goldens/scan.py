"""scan.

Readings of the contract where it leaves a choice:
 1. The input of a token is never decayed by its own gate.
 2. A complex number is two real ones: the gradient of each part is the derivative by that part.
 3. The derivative by an angle behind a decay of zero is zero, as is that by the decay itself.
"""

import itertools

from common import INF, PACKED, Tensor, case, sequences
from mpmath import cos, exp, mpf, sin

NAME = "scan"
REQUIRED, GRADS = "log_decay x", "grad_h grad_final_state"
SHAPES = {
    "log_decay": "B T D", "x": "B T D", "angle": "B T D", "x_imag": "B T D", "h": "B T D", "h_imag": "B T D", "state": "N D", "imag": "N D",
    "x:s6": "B T C", "step": "B T C", "a": "C D", "b": "B T D", "c": "B T D", "d": "C", "o": "B T C", "state:s6": "N C D",
}  # fmt: skip


def sizes(case):
    return {"D": case.get("D", 3), "C": case.get("C", 2)}


def ranges(_):
    return {"log_decay": (-1.5, 0), "angle": (-4, 4), "step": (0, 1.5), "a": (-3, 0)}


def law(x, options, _=None):
    return s6(x) if "step" in x else plain(x)


def plain(x):
    """Every h as the sum of what each input before it has become."""
    B, T, D = x["x"].shape
    N = len(sequences(x))
    zero, start = Tensor((B, T, D)), Tensor((N, D))
    angle, x_imag = x.get("angle", zero), x.get("x_imag", zero)
    initial, initial_imag = x.get("initial_state", start), x.get("initial_imag", start)
    out = {"h": Tensor((B, T, D)), "final_state": Tensor((N, D))}
    is_complex = any(name in x for name in ("angle", "x_imag", "initial_imag"))
    if is_complex:
        out |= {"h_imag": Tensor((B, T, D)), "final_imag": Tensor((N, D))}

    def state(b, first, end, n, i):
        terms = [(initial[n, i], initial_imag[n, i])] + [(x["x"][b, t, i], x_imag[b, t, i]) for t in range(first, end)]
        real = imag = mpf(0)
        for j, (re, im) in enumerate(terms):
            later = range(first + j, end)
            size = exp(sum((x["log_decay"][b, r, i] for r in later), mpf(0)))
            turn = sum((angle[b, r, i] for r in later), mpf(0))
            real += size * (cos(turn) * re - sin(turn) * im)
            imag += size * (sin(turn) * re + cos(turn) * im)
        return real, imag

    for (b, first, end, n), i in itertools.product(sequences(x), range(D)):
        values = {("h", b, t): state(b, first, t + 1, n, i) for t in range(first, end)}
        values["final", n] = state(b, first, end, n, i)
        for (name, *place), (real, imag) in values.items():
            out["h" if name == "h" else "final_state"][(*place, i)] = real
            if is_complex:
                out["h_imag" if name == "h" else "final_imag"][(*place, i)] = imag
    return out


def s6(x):
    (B, T, C), D, N = x["x"].shape, x["a"].shape[1], len(sequences(x))
    initial, d = x.get("initial_state", Tensor((N, C, D))), x.get("d", Tensor((C,)))
    out = {"o": Tensor((B, T, C)), "final_state": Tensor((N, C, D))}

    def state(b, first, end, n, i, j):
        """The sum of what each input before `end` has become."""
        step = [x["step"][b, t, i] for t in range(first, end)]
        terms = [initial[n, i, j]] + [s * x["b"][b, t, j] * x["x"][b, t, i] for s, t in zip(step, range(first, end))]
        return sum((exp(x["a"][i, j] * sum(step[k:], mpf(0))) * term for k, term in enumerate(terms)), mpf(0))

    for (b, first, end, n), i in itertools.product(sequences(x), range(C)):
        for t in range(first, end):
            h = [state(b, first, t + 1, n, i, j) for j in range(D)]
            out["o"][b, t, i] = sum((x["c"][b, t, j] * h[j] for j in range(D)), d[(i,)] * x["x"][b, t, i])
        out["final_state"][n, i] = [state(b, first, end, n, i, j) for j in range(D)]
    return out


DECAYS = {"log_decay": {(0, 1, 0): -50, (0, 3, 0): -INF, (0, 5, 0): 0, (0, 2, 1): -1e4, (0, 4, 1): 0.5, (0, 6, 1): -INF}}
ANGLES = {"angle": {(0, 1, 0): 1e3, (0, 3, 1): -8192, (0, 4, 1): 3e4, (0, 2, 2): -1e6}}
STEPS = {"step": {(0, 1, 0): 0, (0, 3, 1): 40, (0, 4, 0): 500}, "a": {(0, 0): 0, (1, 1): -16}}
COMPLEX, IMAGS = "grad_h grad_h_imag grad_final_state grad_final_imag", "angle x_imag initial_state initial_imag"
S6, S6_GRADS, ALL = "x:s6 step a b c", "grad_o grad_final_state:s6", "d initial_state:s6"


def selective(name, extra="", **rest):
    return case(name, required=S6, extra=extra, grads=S6_GRADS, **rest)


CASES = [
    case("real"), case("real_carried", extra="initial_state"), case("real_t1", extra="initial_state", T=1), case("real_t0", extra="initial_state", T=0),
    case("real_extreme_decay", extra="initial_state", T=8, put=DECAYS), case("real_batch_wide", B=2, T=3, D=19),
    case("real_first_decay_zero", extra="initial_state", T=3, put={"log_decay": {(0, 0, 0): -INF}}),
    case("real_packed", extra="initial_state", D=2, **PACKED), case("real_final_only", grads="grad_final_state", T=4),
    case("complex", extra="angle", grads=COMPLEX), case("complex_carried", extra=IMAGS, grads=COMPLEX), case("complex_input", extra="x_imag", grads=COMPLEX),
    case("complex_state", extra="initial_imag", grads=COMPLEX), case("complex_packed", extra=IMAGS, grads=COMPLEX, D=2, **PACKED),
    case("complex_large_angle", extra=IMAGS, grads=COMPLEX, put=ANGLES), case("complex_t1", extra=IMAGS, grads=COMPLEX, T=1),
    case("complex_extreme_decay", extra=IMAGS, grads=COMPLEX, T=8, put=DECAYS), case("complex_real_part_only", extra="angle", grads="grad_h", T=4),
    selective("s6"), selective("s6_d", "d", T=4), selective("s6_carried", ALL), selective("s6_packed", ALL, D=2, **PACKED),
    selective("s6_extreme_step", ALL, T=6, put=STEPS), selective("s6_batch_odd", ALL, B=2, T=3, C=3, D=1), selective("s6_t1", ALL, T=1),
    selective("s6_wide", T=2, C=18, D=2), case("s6_output_only", required=S6, extra="d", grads="grad_o", T=4),
]  # fmt: skip
