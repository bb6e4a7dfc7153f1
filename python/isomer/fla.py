"""Names and signatures of flash-linear-attention's ops on the laws: a changed import is all that moving over takes.

    from isomer.fla import chunk_gla, fused_recurrent_gated_delta_rule

chunk_, fused_chunk_, fused_recurrent_ and parallel_ of one mechanism are the same function here: the engine picks the form. Outputs come
back in the type of v (float32 and float64 are computed as they are, bfloat16 and float16 in float32), states in that of the arithmetic.
Options that only choose how a GPU works (chunk_size, cu_seqlens_cpu, chunk_indices, safe_gate, disable_recompute, use_graph, ...) are
taken and have no effect; what would change a result and is not there is refused. docs/python.md has the table of arguments.
"""
import torch
import torch.nn.functional as F
from torch import Tensor

from isomer import torch as laws
from isomer._fla import _arithmetic, _flip, _refuse, _state_v_first, _through
from isomer.fla_delta import *  # noqa: F403: the delta rule's family
from isomer.mamba import (causal_conv1d_fn, causal_conv1d_update, mamba_chunk_scan_combined, selective_scan_fn,
                          selective_state_update)
from isomer.mlstm import *  # noqa: F403: the names of mlstm_kernels


def chunk_gla(q, k, v, g, scale=None, initial_state=None, output_final_state=False, state_v_first=False, cu_seqlens=None,
              cu_seqlens_cpu=None):
    """Gated linear attention: g [B, T, H, K] is the logarithm of the decay of every key channel."""
    return _through("chunk_gla", laws.channel_decay, {"q": q, "k": k, "v": v, "log_decay": g}, scale=scale, initial_state=initial_state,
                    output_final_state=output_final_state, state_v_first=state_v_first, cu_seqlens=cu_seqlens)


fused_chunk_gla = chunk_gla


def fused_recurrent_gla(q, k, v, gk=None, gv=None, scale=None, initial_state=None, output_final_state=False, reverse=False,
                        state_v_first=False, cu_seqlens=None, **kwargs):
    state_v_first = _state_v_first("fused_recurrent_gla", kwargs, state_v_first)
    _refuse("fused_recurrent_gla", kwargs, gv=gv)
    if gk is None:
        return chunk_simple_gla(q, k, v, scale=scale, initial_state=initial_state, output_final_state=output_final_state,
                                state_v_first=state_v_first, cu_seqlens=cu_seqlens, reverse=reverse)
    return _through("fused_recurrent_gla", laws.channel_decay, {"q": q, "k": k, "v": v, "log_decay": gk}, scale=scale,
                    initial_state=initial_state, output_final_state=output_final_state, state_v_first=state_v_first,
                    cu_seqlens=cu_seqlens, reverse=reverse)


def chunk_simple_gla(q, k, v, g=None, g_gamma=None, scale=None, initial_state=None, output_final_state=False, state_v_first=False,
                     cu_seqlens=None, cu_seqlens_cpu=None, *, reverse=False, **kwargs):
    """Linear attention with a decay of the head: g [B, T, H] of every token, or g_gamma [H]; logarithms."""
    state_v_first = _state_v_first("chunk_simple_gla", kwargs, state_v_first)
    _refuse("chunk_simple_gla", kwargs)
    if g is not None and g_gamma is not None:
        g = g + g_gamma
    decay = g_gamma if g is None else g
    return _through("chunk_simple_gla", laws.scalar_decay, {"q": q, "k": k, "v": v, "log_decay": decay}, scale=scale,
                    initial_state=initial_state, output_final_state=output_final_state, state_v_first=state_v_first,
                    cu_seqlens=cu_seqlens, reverse=reverse)


def fused_chunk_simple_gla(q, k, v, g=None, g_gamma=None, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None):
    return chunk_simple_gla(q, k, v, g, g_gamma, scale, initial_state, output_final_state, cu_seqlens=cu_seqlens)


def fused_recurrent_simple_gla(q, k, v, g=None, g_gamma=None, scale=None, initial_state=None, output_final_state=False, reverse=False,
                               state_v_first=False, cu_seqlens=None, **kwargs):
    return chunk_simple_gla(q, k, v, g, g_gamma, scale, initial_state, output_final_state, state_v_first, cu_seqlens, reverse=reverse,
                            **kwargs)


def parallel_simple_gla(q, k, v, g=None, scale=None, output_attentions=False, cu_seqlens=None, cu_seqlens_cpu=None):
    _refuse("parallel_simple_gla", {}, output_attentions=output_attentions)
    return chunk_simple_gla(q, k, v, g, scale=scale, cu_seqlens=cu_seqlens)


def chunk_retention(q, k, v, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None, *, reverse=False,
                    state_v_first=False, **kwargs):
    """RetNet: head h decays by 1 - 2^(-5-h)."""
    gamma = (1 - 2.0 ** (-5.0 - torch.arange(q.shape[2], dtype=_arithmetic(v)))).log()
    return chunk_simple_gla(q, k, v, g_gamma=gamma, scale=scale, initial_state=initial_state, output_final_state=output_final_state,
                            cu_seqlens=cu_seqlens, reverse=reverse, state_v_first=state_v_first, **kwargs)


fused_chunk_retention = chunk_retention


def fused_recurrent_retention(q, k, v, scale=None, initial_state=None, output_final_state=False, reverse=False, state_v_first=False,
                              cu_seqlens=None, **kwargs):
    return chunk_retention(q, k, v, scale, initial_state, output_final_state, cu_seqlens, reverse=reverse, state_v_first=state_v_first,
                           **kwargs)


def parallel_retention(q, k, v, scale=None, output_attentions=False, cu_seqlens=None):
    _refuse("parallel_retention", {}, output_attentions=output_attentions)
    return chunk_retention(q, k, v, scale, cu_seqlens=cu_seqlens)


def chunk_lightning_attn(q, k, v, layer_idx, num_layers, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None, *,
                         reverse=False, **kwargs):
    """Lightning attention: head h of layer l decays by exp(-8 h / H (1 - l/L))."""
    H = q.shape[2]
    gamma = -(8 / H * (1 - layer_idx / num_layers)) * torch.arange(H, dtype=_arithmetic(v))
    return chunk_simple_gla(q, k, v, g_gamma=gamma, scale=scale, initial_state=initial_state, output_final_state=output_final_state,
                            cu_seqlens=cu_seqlens, reverse=reverse, **kwargs)


def fused_recurrent_lightning_attn(q, k, v, layer_idx, num_layers, scale=None, initial_state=None, output_final_state=False, reverse=False,
                                   cu_seqlens=None):
    return chunk_lightning_attn(q, k, v, layer_idx, num_layers, scale, initial_state, output_final_state, cu_seqlens, reverse=reverse)


def chunk_linear_attn(q, k, v, scale=None, initial_state=None, output_final_state=False, normalize=True, cu_seqlens=None, *,
                      reverse=False):
    """Linear attention. With normalize outputs are divided by scale q . (sum of keys) + 1e-10, and states are pairs (S, sum of keys)."""
    if not normalize:
        return chunk_simple_gla(q, k, v, scale=scale, initial_state=initial_state, output_final_state=output_final_state,
                                cu_seqlens=cu_seqlens, reverse=reverse)
    if reverse and cu_seqlens is not None:
        raise ValueError("chunk_linear_attn: expected reverse without cu_seqlens, got both")
    kind, turn = _arithmetic(v), _flip if reverse else lambda x: x
    state, z = initial_state if isinstance(initial_state, tuple) else (initial_state, None)
    if state is not None and z is None:
        z = state.new_zeros(state.shape[0], 1, *state.shape[1:3])
    r = laws.scalar_decay(*(turn(x).to(kind) for x in (q, k, v)), scale=scale, normaliser="sum", eps=1e-10, offsets=cu_seqlens,
                          initial_state=None if state is None else state.to(kind), initial_norm=None if z is None else z.squeeze(1).to(kind))
    return turn(r.o).to(v.dtype), (r.final_state if output_final_state else None, r.final_norm.unsqueeze(1))


fused_chunk_linear_attn = chunk_linear_attn


def fused_recurrent_linear_attn(q, k, v, scale=None, initial_state=None, output_final_state=False, reverse=False, normalize=False,
                                cu_seqlens=None):
    return chunk_linear_attn(q, k, v, scale, initial_state, output_final_state, normalize, cu_seqlens, reverse=reverse)


def chunk_rwkv6(r, k, v, w, u, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None, cu_seqlens_cpu=None, *,
                reverse=False, **kwargs):
    """RWKV-6: w [B, T, H, K] is the logarithm of the decay, u [H, K] the bonus of the token itself."""
    _refuse("chunk_rwkv6", kwargs)
    return _through("chunk_rwkv6", laws.channel_decay, {"q": r, "k": k, "v": v, "log_decay": w, "bonus": u}, read="before", scale=scale,
                    initial_state=initial_state, output_final_state=output_final_state, cu_seqlens=cu_seqlens, reverse=reverse)


def fused_recurrent_rwkv6(r, k, v, w, u, scale=None, initial_state=None, output_final_state=False, reverse=False, cu_seqlens=None):
    return chunk_rwkv6(r, k, v, w, u, scale, initial_state, output_final_state, cu_seqlens, reverse=reverse)


def fused_recurrent_hgrn(x, g, initial_state=None, output_final_state=False, cu_seqlens=None):
    """h = exp(g) h + x for every channel, x and g [B, T, D]."""
    kind = _arithmetic(x)
    r = laws.scan(x=x.to(kind), log_decay=g.to(kind), initial_state=None if initial_state is None else initial_state.to(kind),
                  offsets=cu_seqlens)
    return r.h.to(x.dtype), r.final_state if output_final_state else None


chunk_hgrn = fused_recurrent_hgrn


def parallel_attn(q, k, v, g=None, scale=None, window_size=None, cu_seqlens=None, chunk_indices=None, *, sink_bias=None):
    """Causal softmax attention; g [B, T, H] are forget gates."""
    _refuse("parallel_attn", {}, sink_bias=sink_bias)
    return laws.attention(q, k, v, log_forget=g, scale=scale, window=window_size or None, offsets=cu_seqlens).o


def parallel_forgetting_attn(q, k, v, g, scale=None, window_size=None, cu_seqlens=None):
    return parallel_attn(q, k, v, g, scale, window_size, cu_seqlens)


def parallel_based(q, k, v, scale=None, use_norm=True):
    """Based: the Taylor series of the exponential up to the second order."""
    options = {"normaliser": "sum", "eps": 1e-6} if use_norm else {"normaliser": "none"}
    return laws.attention(q, k, v, scale=scale, kernel="taylor", order=2, **options).o


fused_chunk_based = parallel_based

__all__ = [name for name, value in list(globals().items()) if callable(value) and not name.startswith("_") and name != "Tensor"]
