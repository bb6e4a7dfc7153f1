"""Names and signatures of mamba_ssm's scans and of causal_conv1d on the laws."""
import torch
import torch.nn.functional as F

from isomer import torch as laws


def _none(name: str, **values) -> None:
    for key, value in values.items():
        if value is not None:
            raise ValueError(f"{name}: expected no {key}, which is not there on the CPU")


def _step(dt, bias, softplus: bool):
    dt = dt if bias is None else dt + bias
    return F.softplus(dt) if softplus else dt


def _s6(name: str, x, step, A, B, C, D, state, form: str = "auto"):
    """S6 on x and step [B, L, channels], where B and C [B, L, G, N] serve a G-th of the channels each -> o and the last state."""
    if A.is_complex():
        raise ValueError(f"{name}: expected a real A, got {A.dtype}; the law has real decays alone")
    parts = [x.tensor_split(B.shape[2], 2), step.tensor_split(B.shape[2], 2), A.tensor_split(B.shape[2], 0)]
    if x.shape[2] % B.shape[2] != 0 or C.shape != B.shape:
        raise ValueError(f"{name}: expected B and C of as many groups each, which divide {x.shape[2]} channels, got {B.shape[2]} and {C.shape[2]}")
    ds = [None] * B.shape[2] if D is None else D.tensor_split(B.shape[2], 0)
    starts = [None] * B.shape[2] if state is None else state.tensor_split(B.shape[2], 1)
    made = [laws.scan(x=own, step=dt, a=a, b=B[:, :, g], c=C[:, :, g], d=ds[g], initial_state=starts[g], form=form)
            for g, (own, dt, a) in enumerate(zip(*parts))]
    if len(made) == 1:
        return made[0].o, made[0].final_state
    return torch.cat([r.o for r in made], 2), torch.cat([r.final_state for r in made], 1)


def selective_scan_fn(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False):
    """S6: u, delta, z [B, D, L], A [D, N], B and C [B, N, L] or [B, G, N, L], D and delta_bias [D] -> [B, D, L]."""
    name = "selective_scan_fn"
    for matrix, x in (("B", B), ("C", C)):
        if x.dim() not in (3, 4):
            raise ValueError(f"{name}: expected {matrix} [B, N, L] or [B, G, N, L], which depends on the token, got {list(x.shape)}")
        if x.is_complex():
            raise ValueError(f"{name}: expected a real {matrix}, got {x.dtype}")
    kind = torch.float64 if u.dtype == torch.float64 else torch.float32
    x, dt = (t.to(kind).transpose(1, 2) for t in (u, delta))
    dt = _step(dt, None if delta_bias is None else delta_bias.to(kind), delta_softplus)
    b, c = ((t.unsqueeze(1) if t.dim() == 3 else t).to(kind).permute(0, 3, 1, 2) for t in (B, C))
    A = A if A.is_complex() else A.to(kind)
    o, last = _s6(name, x, dt, A, b, c, None if D is None else D.to(kind), None)
    o = o.transpose(1, 2)
    o = (o if z is None else o * F.silu(z.to(kind))).to(u.dtype)
    return (o, last) if return_last_state else o


def selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False, state_batch_indices=None):
    """One token: state [B, D, N] is overwritten, x, dt, z [B, D], A [D, N], B and C [B, N] -> [B, D]. Carries no gradient. With heads
    state [B, H, P, N], x, dt, z [B, H, P], A [H, P, N], B and C [B, G, N], D and dt_bias [H, P] -> [B, H, P]."""
    name = "selective_state_update"
    _none(name, state_batch_indices=state_batch_indices)
    heads = state.dim() == 4
    if state.dim() not in (3, 4) or x.shape != state.shape[:-1]:
        raise ValueError(f"{name}: expected a state [B, D, N] or [B, H, P, N] and x without its last axis, got {list(state.shape)} and {list(x.shape)}")
    if B.dim() not in ((3,) if heads else (2, 3)):
        raise ValueError(f"{name}: expected B and C {'[B, G, N]' if heads else '[B, N]'}, which depend on the token, got {list(B.shape)}")
    kind = torch.float64 if state.dtype == torch.float64 else torch.float32
    flat = lambda t, first: None if t is None else t.to(kind).flatten(first, first + 1) if heads else t.to(kind)
    with torch.no_grad():
        step = _step(flat(dt, 1), flat(dt_bias, 0), dt_softplus)
        b, c = ((t if t.dim() == 3 else t.unsqueeze(1)).to(kind).unsqueeze(1) for t in (B, C))
        A = A if A.is_complex() else flat(A, 0)
        o, last = _s6(name, flat(x, 1).unsqueeze(1), step.unsqueeze(1), A, b, c, flat(D, 0), flat(state, 1), "step")
        state.copy_(last.view(state.shape))
        o = o.view(x.shape)
        return (o if z is None else o * F.silu(z.to(kind))).to(x.dtype)


def mamba_chunk_scan_combined(x, dt, A, B, C, chunk_size=None, D=None, z=None, dt_bias=None, initial_states=None, seq_idx=None,
                              cu_seqlens=None, dt_softplus=False, dt_limit=(0.0, float("inf")), return_final_states=False,
                              return_varlen_states=False):
    """Mamba-2: x, z [B, L, H, P], dt [B, L, H], A [H], B and C [B, L, G, N], D [H] or [H, P] -> [B, L, H, P]; states [B, H, P, N]."""
    _none("mamba_chunk_scan_combined", seq_idx=seq_idx, return_varlen_states=return_varlen_states or None)
    kind = torch.float64 if x.dtype == torch.float64 else torch.float32
    step = _step(dt.to(kind), None if dt_bias is None else dt_bias.to(kind), dt_softplus).clamp(*dt_limit)
    values = x.to(kind)
    state = None if initial_states is None else initial_states.to(kind).transpose(-1, -2)
    r = laws.scalar_decay(C.to(kind), B.to(kind), values * step.unsqueeze(-1), log_decay=step * A.to(kind), initial_state=state,
                          offsets=cu_seqlens, scale=1.0)
    o = r.o
    if D is not None:
        o = o + values * (D.to(kind) if D.dim() == 2 else D.to(kind).unsqueeze(-1))
    o = (o if z is None else o * F.silu(z.to(kind))).to(x.dtype)
    return (o, r.final_state.transpose(-1, -2)) if return_final_states else o


def causal_conv1d_fn(x, weight, bias=None, seq_idx=None, initial_states=None, return_final_states=False, final_states_out=None,
                     activation=None):
    """A short causal convolution of every channel: x [B, D, L], weight [D, W] -> [B, D, L]; states [B, D, W - 1]."""
    _none("causal_conv1d_fn", seq_idx=seq_idx)
    if activation not in (None, "silu", "swish"):
        raise ValueError(f"causal_conv1d: expected an activation None, silu or swish, got {activation!r}")
    kind = torch.float64 if x.dtype == torch.float64 else torch.float32
    states = None if initial_states is None else initial_states.to(kind).transpose(1, 2)
    r = laws.short_conv(x.to(kind).transpose(1, 2), weight.to(kind), None if bias is None else bias.to(kind), initial_state=states,
                        activation=activation)
    y = r.o.transpose(1, 2).to(x.dtype)
    if not return_final_states:
        return y
    final = r.final_state.transpose(1, 2).to(x.dtype)
    return y, final if final_states_out is None else final_states_out.copy_(final)


def causal_conv1d_update(x, conv_state, weight, bias=None, activation=None, cache_seqlens=None, conv_state_indices=None):
    """The next tokens: x [B, D] or [B, D, L]; conv_state [B, D, >= W - 1] holds the last inputs and is overwritten."""
    _none("causal_conv1d_update", cache_seqlens=cache_seqlens, conv_state_indices=conv_state_indices)
    with torch.no_grad():
        tokens = x.unsqueeze(-1) if x.dim() == 2 else x
        seen = torch.cat([conv_state.to(tokens.dtype), tokens], dim=2)
        y = causal_conv1d_fn(tokens, weight, bias, initial_states=seen[:, :, -(weight.shape[1] - 1 + tokens.shape[2]) : -tokens.shape[2]],
                             activation=activation)
        conv_state.copy_(seen[:, :, -conv_state.shape[2] :])
        return y.squeeze(-1) if x.dim() == 2 else y


__all__ = ["causal_conv1d_fn", "causal_conv1d_update", "mamba_chunk_scan_combined", "selective_scan_fn", "selective_state_update"]
