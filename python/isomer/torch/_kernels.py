"""What layers have beside a law: products with weights, short convolution, rotation of pairs, gated norm."""
from typing import NamedTuple

from torch import Tensor

from isomer.torch._laws import run


class ConvResult(NamedTuple):
    """o [B,T,C] and final_state [B,W-1,C], the last tokens."""

    o: Tensor
    final_state: Tensor


def _call(kernel: str, tensors: dict, options: dict, threads: int | None) -> dict:
    given = {name: x for name, x in tensors.items() if x is not None}
    return run(kernel, given, tuple((name, value) for name, value in options.items() if value is not None), "auto", threads)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, threads: int | None = None) -> Tensor:
    """x [...,K] times the transpose of weight [N,K], plus bias [N] -> [...,N], as torch.nn.functional.linear."""
    if not isinstance(x, Tensor) or x.dim() < 1:
        raise ValueError(f"linear: expected a tensor x [...,K], got {'a number' if isinstance(x, Tensor) else type(x).__name__}")
    rows = x if x.dim() == 2 else x.unsqueeze(0) if x.dim() == 1 else x.flatten(0, -2)
    made = _call("linear", {"x": rows, "weight": weight, "bias": bias}, {}, threads)["o"]
    return made.reshape(*x.shape[:-1], weight.shape[0])


def short_conv(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, initial_state: Tensor | None = None,
               offsets: Tensor | None = None, activation: str | None = None, threads: int | None = None) -> ConvResult:
    """A causal convolution of every channel over the last W tokens: o_t[c] = bias[c] + sum_j weight[c, j] x_{t-W+1+j}[c], or silu of it.

    x [B,T,C], weight [C,W], bias [C]; initial_state [B,W-1,C]: the tokens before the first, oldest first (absent: zeros); offsets
    [n+1] packs n sequences. activation: None, silu (swish).
    """
    if activation not in (None, "silu", "swish"):
        raise ValueError(f"short_conv: expected an activation None, silu or swish, got {activation!r}")
    if x.dim() == 3 and x.stride(2) != 1:  # channels that lie apart take longer than a copy
        x = x.contiguous()
    tensors = {"x": x, "weight": weight, "bias": bias, "initial_state": initial_state, "offsets": offsets}
    return ConvResult(**_call("short_conv", tensors, {"silu": True if activation else None}, threads))


def rotary(x: Tensor, angle: Tensor | None = None, *, base: float | None = None, position: int | None = None,
           threads: int | None = None) -> Tensor:
    """Pairs of channels (n, n + D/2), turned: o_n = x_n cos a - x_{n+D/2} sin a, o_{n+D/2} = x_n sin a + x_{n+D/2} cos a.

    x [B,T,H,D] with an even D. The angle is (position + t) base^(-2n/D) (base 10000, position 0), or given as [B,T,H or 1,D/2].
    """
    if angle is not None and (base is not None or position is not None):
        raise ValueError("rotary: expected an angle, or base and position, got both")
    return _call("rotary", {"x": x, "angle": angle}, {"base": base, "position": position}, threads)["o"]


def gated_norm(x: Tensor, gate: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None, *, kind: str = "rms",
               eps: float | None = None, activation: str | None = None, gate_first: bool = False,
               threads: int | None = None) -> Tensor:
    """norm(x) f(gate), or with gate_first (Mamba-2) norm(x f(gate)), over the last axis.

    x and gate [...,D]; weight and bias [D], or [H,D] for x [...,H,D]. kind: rms x / sqrt(mean x^2 + eps) (eps 1e-6), layer
    (1e-6), l2 x / max(|x|, eps) (1e-12). activation f: silu, sigmoid, gelu.
    """
    if gate is not None and gate.shape != x.shape:
        raise ValueError(f"gated_norm: expected a gate of the shape of x, {list(x.shape)}, got {list(gate.shape)}")
    if x.dim() < 1 or (weight is not None and weight.dim() == 2 and x.dim() < 2):
        raise ValueError(f"gated_norm: expected x [...,D], or [...,H,D] beside a weight [H,D], got {list(x.shape)}")
    heads = x.shape[-2] if x.dim() > 1 else 1
    rows = [y if y is None else y.reshape(1, -1, heads, x.shape[-1]) for y in (x, gate)]
    options = {"kind": kind, "eps": eps, "activation": activation, "gate_first": gate_first or None}
    made = _call("gated_norm", {"x": rows[0], "gate": rows[1], "weight": weight, "bias": bias}, options, threads)["o"]
    return made.reshape(x.shape)
