"""mamba_ssm's, causal_conv1d's and mlstm_kernels' names, beside plain loops in PyTorch."""
import pytest
import torch
import torch.nn.functional as F

import isomer.fla
from isomer.fla import (causal_conv1d_fn, causal_conv1d_update, mamba_chunk_scan_combined, mlstm_chunkwise, selective_scan_fn,
                        selective_state_update)

B, D, N, L = 2, 6, 4, 21


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape))).requires_grad_()


def s6(u, delta, A, b, c, d, z, bias):
    dt = F.softplus(delta + bias[:, None])
    state, out = torch.zeros(B, D, N, dtype=u.dtype), []
    for t in range(L):
        state = torch.exp(dt[:, :, t, None] * A) * state + (dt[:, :, t] * u[:, :, t])[..., None] * b[:, None, :, t]
        out.append((state * c[:, None, :, t]).sum(-1) + d * u[:, :, t])
    return torch.stack(out, dim=2) * F.silu(z), state


def test_selective_scan():
    inputs = [normal(B, D, L), normal(B, D, L), -normal(D, N).detach().abs().requires_grad_(), normal(B, N, L), normal(B, N, L + 0), normal(D),
              normal(B, D, L), normal(D)]
    u, delta, A, b, c, d, z, bias = inputs
    got, last = selective_scan_fn(u, delta, A, b, c, d, z, bias, delta_softplus=True, return_last_state=True)
    want, want_last = s6(*inputs)
    assert torch.allclose(got, want, atol=1e-10) and torch.allclose(last, want_last, atol=1e-10)
    weights = torch.randn_like(want)
    for x, y in zip(torch.autograd.grad((got * weights).sum(), inputs, allow_unused=True), torch.autograd.grad((want * weights).sum(), inputs)):
        assert torch.allclose(x, y, atol=1e-8)
    state = torch.zeros(B, D, N, dtype=u.dtype)
    for t in range(L):
        step = selective_state_update(state, u[:, :, t], delta[:, :, t], A, b[:, :, t], c[:, :, t], d, z[:, :, t], bias, dt_softplus=True)
        assert torch.allclose(step, want[:, :, t], atol=1e-10)
    assert torch.allclose(state, want_last, atol=1e-10)
    assert torch.allclose(selective_scan_fn(u, delta, A, b[:, None], c[:, None]), selective_scan_fn(u, delta, A, b, c))


def test_groups_of_channels():
    """B and C [B, G, N, L] serve a G-th of the channels each."""
    u, delta, A = normal(B, D, L), normal(B, D, L).detach().abs(), -normal(D, N).detach().abs()
    b, c = normal(B, 2, N, L), normal(B, 2, N, L + 0).flip(-1)
    got, last = selective_scan_fn(u, delta, A, b, c, return_last_state=True)
    for g, own in enumerate((slice(0, 3), slice(3, 6))):
        want, want_last = selective_scan_fn(u[:, own], delta[:, own], A[own], b[:, g], c[:, g], return_last_state=True)
        assert torch.equal(got[:, own], want) and torch.equal(last[:, own], want_last)


def test_update_of_heads():
    H, P, G = 4, 3, 2
    state, x, dt, z = normal(B, H, P, N).detach(), normal(B, H, P), normal(B, H, P) * 1, normal(B, H, P)
    A, d, bias, b, c = -normal(H, P, N).abs(), normal(H, P), normal(H, P), normal(B, G, N), normal(B, G, N).flip(0)
    step = F.softplus(dt + bias)
    wide_b, wide_c = (y.repeat_interleave(H // G, 1)[:, :, None] for y in (b, c))
    want_state = torch.exp(step[..., None] * A) * state + (step * x)[..., None] * wide_b
    want = ((want_state * wide_c).sum(-1) + d * x) * F.silu(z)
    got = selective_state_update(state, x, dt, A, b, c, d, z, bias, dt_softplus=True)
    assert torch.allclose(got, want, atol=1e-10) and torch.allclose(state, want_state, atol=1e-10)


@pytest.mark.parametrize("call, text", [
    (lambda u, A, b: selective_scan_fn(u, u, A.to(torch.complex128), b, b), "expected a real A"),
    (lambda u, A, b: selective_scan_fn(u, u, A, A, b), "which depends on the token"),
    (lambda u, A, b: selective_state_update(u[..., :N], u[..., 0], u[..., 0], A + 1j, b[..., 0], b[..., 0]), "expected a real A"),
    (lambda u, A, b: selective_state_update(u[..., :N], u[..., 0], u[..., 0], A, A[0], A[0]), "which depend on the token"),
    (lambda u, A, b: selective_state_update(u[..., :N], u, u, A, b, b), "without its last axis"),
])
def test_refusals(call, text):
    with pytest.raises(ValueError, match=text):
        call(normal(B, D, L).detach(), -normal(D, N).detach().abs(), normal(B, N, L).detach())


def test_mamba2():
    H, P, G = 4, 5, 2
    x, dt, A, b, c, d = normal(B, L, H, P), normal(B, L, H), -normal(H).abs(), normal(B, L, G, N), normal(B, L, G, N), normal(H)
    start = normal(B, H, P, N)
    got, last = mamba_chunk_scan_combined(x, dt, A, b, c, 64, D=d, initial_states=start, dt_softplus=True, return_final_states=True)
    step, state = F.softplus(dt), start
    for t in range(L):
        bt, ct = (y[:, t].repeat_interleave(H // G, 1) for y in (b, c))
        state = torch.exp(step[:, t] * A)[..., None, None] * state + (step[:, t, :, None] * x[:, t])[..., None] * bt[:, :, None]
        want = (state * ct[:, :, None]).sum(-1) + d[:, None] * x[:, t]
        assert torch.allclose(got[:, t], want, atol=1e-10)
    assert torch.allclose(last, state, atol=1e-10)


@pytest.mark.parametrize("activation", [None, "silu"])
def test_convolution(activation):
    x, weight, bias = normal(B, D, L), normal(D, 4), normal(D)
    want = F.conv1d(F.pad(x, (3, 0)), weight[:, None], bias, groups=D)
    want = want if activation is None else F.silu(want)
    y, final = causal_conv1d_fn(x, weight, bias, activation=activation, return_final_states=True)
    assert torch.allclose(y, want) and torch.equal(final, x[:, :, -3:])
    assert torch.allclose(causal_conv1d_fn(x[:, :, 9:], weight, bias, initial_states=x[:, :, 6:9], activation=activation), want[:, :, 9:])
    for width in (3, 4):
        state = torch.zeros(B, D, width, dtype=x.dtype)
        for t in range(L):
            assert torch.allclose(causal_conv1d_update(x[:, :, t], state, weight, bias, activation), want[:, :, t])
    with pytest.raises(ValueError, match="activation"):
        causal_conv1d_fn(x, weight, activation="relu")


def test_mlstm():
    H, K, V = 2, 4, 3
    q, k, v, i, f = normal(B, H, L, K), normal(B, H, L, K), normal(B, H, L, V), normal(B, H, L), normal(B, H, L)
    h, (C, n, m) = mlstm_chunkwise(q, k, v, i, f, return_last_states=True, eps=0)
    state, norm = torch.zeros(B, H, K, V, dtype=q.dtype), torch.zeros(B, H, K, dtype=q.dtype)
    for t in range(L):
        decay, gate = f[:, :, t].sigmoid()[..., None], i[:, :, t].exp()[..., None]
        state = decay[..., None] * state + (gate * k[:, :, t])[..., None] * v[:, :, t, None]
        norm = decay * norm + gate * k[:, :, t]
        read = q[:, :, t] * K**-0.5
        want = (state * read[..., None]).sum(-2) / (norm * read).sum(-1, keepdim=True).abs().clamp(min=1)
        assert torch.allclose(h[:, :, t], want, atol=1e-9)
    assert torch.allclose(C * m.exp()[..., None], state, atol=1e-9) and torch.allclose(n * m.exp(), norm, atol=1e-9)


@pytest.mark.parametrize("name", sorted(name for name in isomer.fla.__all__ if name.startswith("mlstm") and "step__" not in name))
def test_names_of_mlstm_kernels(name):
    q, k, v, i, f = normal(B, 2, L, 4), normal(B, 2, L, 4) * 2, normal(B, 2, L, 3), normal(B, 2, L), normal(B, 2, L) * 2
    h, states = getattr(isomer.fla, name)(q, k, v, i, f, None, None, None, True, 1e-6, dtype_state=torch.float64)
    want, last = mlstm_chunkwise(q, k, v, i, f, return_last_states=True)
    assert torch.equal(h, want) and all(torch.equal(x, y) for x, y in zip(states, last))
    step = getattr(isomer.fla, "mlstm_recurrent_step__native")
    first, states = getattr(isomer.fla, name)(*[x[:, :, :9] for x in (q, k, v, i, f)], return_last_states=True, dtype_state=torch.float64)
    for t in range(9, L):
        at = [x[:, :, t] for x in (q, k, v)] + [x[:, :, t : t + 1] for x in (i, f)]
        h, states = step(*at, *states, dtype_state=torch.float64)
        assert torch.allclose(h, want[:, :, t], atol=1e-10)
    assert getattr(isomer.fla, name)(*[x.bfloat16() for x in (q, k, v)], i.float(), f.float()).dtype == torch.bfloat16
    with pytest.raises(ValueError, match="expected no speed"):
        getattr(isomer.fla, name)(q, k, v, i, f, speed=3)
