"""Products with weights, short convolution, rotation and gated norm on tensors of PyTorch, beside its plain operations."""
import pytest
import torch
import torch.nn.functional as F

from isomer.torch import gated_norm, linear, rotary, short_conv

B, T, H, D, C, W = 2, 9, 3, 8, 6, 4


def normal(*shape, kind=torch.float64):
    return torch.randn(*shape, dtype=kind, generator=torch.Generator().manual_seed(sum(shape))).requires_grad_()


def plain_conv(x, weight, bias=None, state=None, silu=False):
    before = x.new_zeros(x.shape[0], weight.shape[1] - 1, x.shape[2]) if state is None else state
    y = F.conv1d(torch.cat([before, x], 1).transpose(1, 2), weight[:, None], bias, groups=x.shape[2]).transpose(1, 2)
    return F.silu(y) if silu else y


def plain_rotary(x, angle):
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def plain_norm(x, gate, weight, bias, kind, gate_first, activation=F.silu):
    x = x * activation(gate) if gate_first else x
    if kind == "rms":
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    else:
        y = F.layer_norm(x, x.shape[-1:], eps=1e-6) if kind == "layer" else F.normalize(x, dim=-1)
    y = y * weight + bias
    return y if gate_first else y * activation(gate)


CASES = {
    "linear": (linear, F.linear, lambda: [normal(B, T, D), normal(C, D), normal(C)]),
    "linear_plain": (lambda x, w: linear(x, w), F.linear, lambda: [normal(B, D, T).transpose(1, 2), normal(D, C).t()]),
    "linear_row": (linear, F.linear, lambda: [normal(D), normal(C, D), normal(C)]),
    "conv": (lambda x, w, b, s: short_conv(x, w, b, initial_state=s), lambda x, w, b, s: (plain_conv(x, w, b, s), torch.cat([s, x], 1)[:, -3:]),
             lambda: [normal(B, T, C), normal(C, W), normal(C), normal(B, W - 1, C)]),
    "conv_silu": (lambda x, w: short_conv(x, w, activation="silu").o, lambda x, w: plain_conv(x, w, silu=True),
                  lambda: [normal(B, C, T).transpose(1, 2), normal(C, W)]),
    "rotary": (lambda x: rotary(x, base=100.0, position=5),
               lambda x: plain_rotary(x, (5 + torch.arange(T))[:, None, None] * 100.0 ** (-2 * torch.arange(D // 2, dtype=x.dtype) / D)),
               lambda: [normal(B, T, H, D)]),
    "rotary_angle": (rotary, plain_rotary, lambda: [normal(B, T, H, D), normal(B, T, 1, D // 2)]),
    **{f"norm_{kind}_{first}": (lambda *x, k=kind, f=first: gated_norm(*x, kind=k, gate_first=f),
                                lambda *x, k=kind, f=first: plain_norm(*x, k, f),
                                lambda: [normal(B, T, D), normal(B, T, D), normal(D), normal(D)])
       for kind in ("rms", "layer", "l2") for first in (False, True)},
    "norm_of_heads": (lambda *x: gated_norm(*x, activation="sigmoid"), lambda *x: plain_norm(*x, "rms", False, torch.sigmoid),
                      lambda: [normal(B, T, H, D), normal(B, T, H, D), normal(H, D), normal(H, D)]),
    "norm_alone": (lambda x, w: gated_norm(x, weight=w, eps=1e-6, kind="layer"), lambda x, w: F.layer_norm(x, (D,), w, eps=1e-6),
                   lambda: [normal(T, D), normal(D)]),
}


@pytest.fixture(params=CASES)
def case(request):
    ours, plain, make = CASES[request.param]
    return ours, plain, [x.detach().requires_grad_() for x in make()]


def several(x):
    return tuple(x) if isinstance(x, tuple) else (x,)


def test_against_the_plain_one(case):
    ours, plain, tensors = case
    got, want = several(ours(*tensors)), several(plain(*tensors))
    for a, b in zip(got, want):
        assert a.shape == b.shape and torch.allclose(a, b, atol=1e-12)
    loss = lambda made: sum((x * torch.arange(x.numel(), dtype=x.dtype).reshape(x.shape)).sum() for x in made)
    for a, b in zip(torch.autograd.grad(loss(got), tensors), torch.autograd.grad(loss(want), tensors)):
        assert torch.allclose(a, b, atol=1e-8)


def test_gradcheck(case):
    ours, _, tensors = case
    assert torch.autograd.gradcheck(lambda *x: several(ours(*x)), tensors)


def test_compile_has_no_break(case):
    ours, _, tensors = case
    torch._dynamo.reset()
    compiled = torch.compile(lambda *x: several(ours(*x))[0], fullgraph=True, backend="aot_eager")
    for call in (lambda f: f(*tensors), lambda f: torch.autograd.grad(f(*tensors).sum(), tensors)[0]):
        assert torch.allclose(call(compiled), call(lambda *x: several(ours(*x))[0]), atol=1e-12)


def test_outputs_may_be_changed(case):
    """Layers change what they got in its place; PyTorch refuses that for what backward reads."""
    ours, _, tensors = case
    want = torch.autograd.grad(several(ours(*tensors))[0].sin().sum(), tensors)
    for got, expected in zip(torch.autograd.grad(several(ours(*tensors))[0].mul_(1).sin().sum(), tensors), want):
        assert torch.allclose(got, expected, atol=1e-12)


def test_threads_and_types():
    x, gate, weight = (normal(*shape, kind=torch.float32) for shape in ((2, 33, 64), (2, 33, 64), (64,)))
    for threads in (1, 2):
        assert torch.equal(gated_norm(x, gate, weight, threads=threads), gated_norm(x, gate, weight, threads=1))
    half = gated_norm(x.bfloat16(), gate.bfloat16(), weight.bfloat16())
    assert half.dtype == torch.bfloat16 and (half.float() - gated_norm(x, gate, weight)).abs().max() < 0.1
    r = short_conv(x.half(), normal(64, 4, kind=torch.float16))
    assert r.o.dtype == torch.float16 and r.final_state.dtype == torch.float32


@pytest.mark.parametrize("shape, K", [((5, 0), 0), ((2, 3, 0), 0), ((0, 4), 4), ((3, 0, 4), 4), ((0,), 0)])
def test_empty_products(shape, K):
    x, weight, bias = normal(*shape), normal(3, K), normal(3)
    assert torch.equal(linear(x, weight, bias), F.linear(x, weight, bias))


def test_packed_convolution():
    x, weight = normal(1, 12, C), normal(C, W)
    r = short_conv(x, weight, offsets=torch.tensor([0, 5, 12]))
    assert torch.allclose(r.o[:, 5:], plain_conv(x[:, 5:], weight)) and r.final_state.shape == (2, W - 1, C)


@pytest.mark.parametrize("call, text", [
    (lambda: linear(normal(2, 5), normal(4, 6)), r"expected weight \[outputs, 5\], got \[4, 6\]"),
    (lambda: linear(normal(2, 5), normal(4, 5), normal(3)), r"expected bias \[4\], got \[3\]"),
    (lambda: linear(normal(2, 5), normal(4)), "expected weight with 2 axes"),
    (lambda: linear(normal(2, 5).detach().numpy(), normal(4, 5)), "expected a tensor x [^ ]*, got ndarray"),
    (lambda: short_conv(normal(2, 5, 3), normal(4, 2)), r"expected weight \[3, at least 1\], got \[4, 2\]"),
    (lambda: short_conv(normal(2, 5), normal(4, 2)), "expected x with 3 axes"),
    (lambda: short_conv(normal(2, 5, 3), normal(3, 2), activation="relu"), "None, silu or swish"),
    (lambda: rotary(normal(1, 2, 3, 5)), "expected an even D, got 5"),
    (lambda: rotary(normal(1, 2, 3, 4), normal(1, 2, 1, 2), base=2.0), "got both"),
    (lambda: gated_norm(normal(2, 4), normal(2, 3)), "expected a gate of the shape of x"),
    (lambda: gated_norm(normal(2, 4), kind="batch"), "rms"),
    (lambda: gated_norm(normal(2, 4), weight=normal(4).float()), "expected weight in F64 as x, got F32"),
])
def test_refusals(call, text):
    with pytest.raises(ValueError, match=text):
        call()
