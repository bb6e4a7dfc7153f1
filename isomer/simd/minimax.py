#!/usr/bin/env python3
"""Prints the polynomial coefficients of math.h and of exp2_product (Remez exchange in 60 digits; needs mpmath).

Each polynomial is the smooth rest of a function after its leading terms, so those stay exact:
  exp   P(r) = 2 (e^r - 1 - r) / r^2      on |r| <= ln2/2        weighted by r^2 e^-r
  exp2  P(r) = (2^r - 1) / r              on |r| <= 1/2          weighted by r 2^-r
  atanh P(z) = (atanh(s) - s) / s^3       z = s^2, s <= 3-2√2    weighted by s^2 (the error relative to the logarithm)
  sin   P(z) = (sin(r) - r) / r^3         z = r^2, r <= π/4      weighted by z
  cos   P(z) = (cos(r) - 1 + z/2) / z^2   z = r^2, r <= π/4      weighted by z^2
"""
from mpmath import mp, mpf

mp.dps = 60


def remez(f, weight, lo, hi, degree):
    """The polynomial p of the given degree with the least max |weight (p - f)|, lowest coefficient first."""
    n = degree + 2
    nodes = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    for _ in range(30):
        a, b = mp.matrix(n, n), mp.matrix(n, 1)
        for i, x in enumerate(nodes):
            for j in range(n - 1):
                a[i, j] = x**j
            a[i, n - 1] = (-1) ** i / weight(x)
            b[i] = f(x)
        solution = mp.lu_solve(a, b)
        p = [solution[j] for j in range(n - 1)]
        error = lambda x: weight(x) * (mp.polyval(p[::-1], x) - f(x))
        grid = [lo + (hi - lo) * mpf(i) / 1000 for i in range(1001)]
        values = [error(x) for x in grid]
        peaks = []
        for i, (x, v) in enumerate(zip(grid, values)):
            if peaks and (v > 0) == (peaks[-1][1] > 0):
                if abs(v) > abs(peaks[-1][1]):
                    peaks[-1] = (x, v)
            else:
                peaks.append((x, v))
        while len(peaks) > n:
            peaks.pop(0 if abs(peaks[0][1]) < abs(peaks[-1][1]) else -1)
        if len(peaks) < n or [x for x, _ in peaks] == nodes:
            break
        nodes = [x for x, _ in peaks]
    return p, max(abs(v) for v in values)


def show(name, type_, p, error):
    digits = 10 if type_ == "float" else 18
    print(f"{name} {type_}: max weighted error 2^{float(mp.log(error, 2)):.1f}")
    print("  {" + ", ".join(mp.nstr(c, digits) for c in p) + "}")


def main():
    tiny = mpf(10) ** -25
    half_ln2 = mp.ln2 / 2 * mpf("1.001")
    atanh_end, trig_end = (3 - 2 * mp.sqrt(2)) ** 2 * mpf("1.001"), (mp.pi / 4) ** 2 * mpf("1.001")
    mp.dps = 90  # the quotients below cancel up to half the digits at `tiny`
    exp_rest = lambda r: 2 * (mp.exp(r) - 1 - r) / r**2 if abs(r) > tiny else mpf(1)
    exp2_rest = lambda r: (mpf(2) ** r - 1) / r if abs(r) > tiny else mp.ln2
    half = mpf("0.5005")
    root = mp.sqrt
    atanh_rest = lambda z: (mp.atanh(root(z)) - root(z)) / root(z) ** 3 if z > tiny else mpf(1) / 3
    sin_rest = lambda z: (mp.sin(root(z)) - root(z)) / root(z) ** 3 if z > tiny else -mpf(1) / 6
    cos_rest = lambda z: (mp.cos(root(z)) - 1 + z / 2) / z**2 if z > tiny else mpf(1) / 24
    for type_, degrees in (("float", (4, 4, 2, 2, 2)), ("double", (9, 10, 6, 5, 5))):
        e, b, a, s, c = degrees
        show("exp", type_, *remez(exp_rest, lambda r: r**2 * mp.exp(-r) + tiny, -half_ln2, half_ln2, e))
        show("exp2", type_, *remez(exp2_rest, lambda r: abs(r) * mpf(2) ** -r + tiny, -half, half, b))
        show("atanh", type_, *remez(atanh_rest, lambda z: z + tiny, mpf(0), atanh_end, a))
        show("sin", type_, *remez(sin_rest, lambda z: z + tiny, mpf(0), trig_end, s))
        show("cos", type_, *remez(cos_rest, lambda z: z**2 + tiny, mpf(0), trig_end, c))


if __name__ == "__main__":
    main()
