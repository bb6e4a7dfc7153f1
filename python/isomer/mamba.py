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


def _one_group(name: str, x, axes: int):
    """B and C of S6: [B, N, L], or [B, 1, N, L]."""
    if x.dim() == axes + 1:
        if x.shape[1] != 1:
            raise ValueError(f"{name}: expected B and C of one group, got {x.shape[1]}")
        x = x.squeeze(1)
    if x.dim() != axes:
        raise ValueError(f"{name}: expected B and C that depend on the token, got {x.dim()} axes")
    return x


def selective_scan_fn(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False):
    """S6: u, delta, z [B, D, L], A [D, N], B and C [B, N, L] (or [B, 1, N, L]), D and delta_bias [D] -> [B, D, L]."""
    kind = torch.float64 if u.dtype == torch.float64 else torch.float32
    x, dt = (t.to(kind).transpose(1, 2) for t in (u, delta))
    dt = _step(dt, None if delta_bias is None else delta_bias.to(kind), delta_softplus)
    b, c = (_one_group("selective_scan_fn", t, 3).to(kind).transpose(1, 2) for t in (B, C))
    r = laws.scan(x=x, step=dt, a=A.to(kind), b=b, c=c, d=None if D is None else D.to(kind))
    o = r.o.transpose(1, 2)
    o = (o if z is None else o * F.silu(z.to(kind))).to(u.dtype)
    return (o, r.final_state) if return_last_state else o


def selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False, state_batch_indices=None):
    """One token: state [B, D, N] is overwritten, x, dt, z [B, D], A [D, N], B and C [B, N] -> [B, D]. Carries no gradient."""
    _none("selective_state_update", state_batch_indices=state_batch_indices)
    if state.dim() != 3:
        raise ValueError(f"selective_state_update: expected a state [B, D, N], got {state.dim()} axes")
    kind = torch.float64 if state.dtype == torch.float64 else torch.float32
    with torch.no_grad():
        step = _step(dt.to(kind), None if dt_bias is None else dt_bias.to(kind), dt_softplus)
        b, c = (_one_group("selective_state_update", t, 2).to(kind) for t in (B, C))
        r = laws.scan(x=x.to(kind).unsqueeze(1), step=step.unsqueeze(1), a=A.to(kind), b=b.unsqueeze(1), c=c.unsqueeze(1),
                      d=None if D is None else D.to(kind), initial_state=state.to(kind), form="step")
        state.copy_(r.final_state)
        o = r.o.squeeze(1)
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
