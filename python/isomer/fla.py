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
from isomer.mamba import (causal_conv1d_fn, causal_conv1d_update, mamba_chunk_scan_combined, selective_scan_fn,
                          selective_state_update)
from isomer.mlstm import *  # noqa: F403: the names of mlstm_kernels

_IGNORED = {"chunk_size", "cu_seqlens_cpu", "chunk_indices", "safe_gate", "disable_recompute", "use_graph", "max_num_seqs",
            "solve_tril_precision", "use_exp2"}


def _refuse(name: str, kwargs: dict, **values) -> None:
    """Whatever is set that the law does not do."""
    for key, value in {**kwargs, **values}.items():
        if key in _IGNORED or value is None or value is False:
            continue
        if key == "head_first":
            raise ValueError(f"{name}: expected tensors [B, T, H, D], got head_first=True; transpose them")
        raise ValueError(f"{name}: expected {key} not to be set, for the law has no such option, got {value!r}"
                         if not isinstance(value, Tensor) else f"{name}: expected no {key}, for the law has no such tensor")


def _state_v_first(name: str, kwargs: dict, state_v_first: bool) -> bool:
    """state_v_first, or what its old name transpose_state_layout says, which is taken out of kwargs."""
    old = kwargs.pop("transpose_state_layout", None)
    if old is not None and state_v_first:
        raise ValueError(f"{name}: expected state_v_first, or transpose_state_layout, its old name, got both")
    return bool(state_v_first or old)


def _arithmetic(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _flip(x):
    return None if x is None else x.flip(1)


def _through(name: str, law, tensors: dict, *, initial_state=None, output_final_state=False, state_v_first=False, cu_seqlens=None,
             reverse=False, **options):
    """(o, final state or None) of a law with a state [K, V]."""
    v = tensors["v"]
    if reverse:
        if cu_seqlens is not None:
            raise ValueError(f"{name}: expected reverse without cu_seqlens, got both")
        tensors = {key: _flip(x) if x is not None and x.dim() > 2 else x for key, x in tensors.items()}
    kind = _arithmetic(v)
    tensors = {key: x if x is None else x.to(kind) for key, x in tensors.items()}
    state = None if initial_state is None else initial_state.to(kind)
    if state is not None and state_v_first:
        state = state.transpose(-1, -2)
    r = law(**tensors, initial_state=state, offsets=cu_seqlens, **options)
    final = None
    if output_final_state:
        final = r.final_state.transpose(-1, -2) if state_v_first else r.final_state
    o = _flip(r.o) if reverse else r.o
    return o.to(v.dtype), final


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


def _delta(name, q, k, v, g, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, state_v_first, cu_seqlens,
           use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False):
    if allow_neg_eigval and not use_beta_sigmoid_in_kernel:
        raise ValueError(f"{name}: expected use_beta_sigmoid_in_kernel=True beside allow_neg_eigval=True")
    beta = torch.ones_like(v[..., 0]) if beta is None else beta
    if beta.dim() == 4:
        return _delta_of_values(name, q, k, v, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, cu_seqlens)
    if use_beta_sigmoid_in_kernel:
        beta = beta.to(_arithmetic(beta)).sigmoid() * (2 if allow_neg_eigval else 1)
    return _through(name, laws.delta, {"q": q, "k": k, "v": v, "beta": beta, "log_decay": g}, scale=scale, initial_state=initial_state,
                    output_final_state=output_final_state, state_v_first=state_v_first, cu_seqlens=cu_seqlens,
                    l2norm=bool(use_qk_l2norm_in_kernel))


def _delta_of_values(name, q, k, v, beta, scale, initial_state, output_final_state, l2norm, cu_seqlens):
    """beta [B, T, H, V]: the columns of a state do not know each other, so that each is a head of its own."""
    B, T, H, V = v.shape
    start = None if initial_state is None else initial_state.transpose(-1, -2).flatten(1, 2).unsqueeze(-1)
    o, final = _through(name, laws.delta, {"q": q, "k": k, "v": v.reshape(B, T, H * V, 1), "beta": beta.reshape(B, T, H * V)}, scale=scale,
                        initial_state=start, output_final_state=output_final_state, cu_seqlens=cu_seqlens, l2norm=bool(l2norm))
    return o.reshape(B, T, H, V), None if final is None else final.reshape(-1, H, V, final.shape[2]).transpose(-1, -2)


def chunk_delta_rule(q, k, v, beta, scale=None, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False,
                     cu_seqlens=None, cu_seqlens_cpu=None, **kwargs):
    """DeltaNet; beta [B, T, H], or [B, T, H, V]."""
    _refuse("chunk_delta_rule", kwargs)
    return _delta("chunk_delta_rule", q, k, v, None, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, False,
                  cu_seqlens)


fused_chunk_delta_rule = chunk_delta_rule


def fused_recurrent_delta_rule(q, k, v, beta=None, scale=None, initial_state=None, output_final_state=False,
                               use_qk_l2norm_in_kernel=False, cu_seqlens=None):
    return chunk_delta_rule(q, k, v, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, cu_seqlens)


def _head_gate(name, g, use_gate_in_kernel=False, A_log=None, dt_bias=None):
    """The logarithm of the decay of every head from the numbers before the gate, where the kernel is to make it."""
    if not use_gate_in_kernel:
        return g
    if g is None or A_log is None:
        raise ValueError(f"{name}: expected g and A_log beside use_gate_in_kernel=True")
    kind = _arithmetic(g)
    return -A_log.to(kind).exp() * F.softplus(g.to(kind) + (0 if dt_bias is None else dt_bias.to(kind)))


def chunk_gated_delta_rule(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False,
                           use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False, state_v_first=False, cu_seqlens=None,
                           cu_seqlens_cpu=None, chunk_indices=None, cp_context=None, **kwargs):
    """Gated DeltaNet; g [B, T, H] is the logarithm of the decay of the head."""
    state_v_first = _state_v_first("chunk_gated_delta_rule", kwargs, state_v_first)
    g = _head_gate("chunk_gated_delta_rule", g, **{key: kwargs.pop(key) for key in ("use_gate_in_kernel", "A_log", "dt_bias") if key in kwargs})
    _refuse("chunk_gated_delta_rule", kwargs, cp_context=cp_context)
    return _delta("chunk_gated_delta_rule", q, k, v, g, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel,
                  state_v_first, cu_seqlens, use_beta_sigmoid_in_kernel, allow_neg_eigval)


chunk_gdn = chunk_gated_delta_rule


def fused_recurrent_gated_delta_rule(q, k, v, g=None, gk=None, gv=None, beta=None, scale=None, initial_state=None,
                                     output_final_state=False, use_qk_l2norm_in_kernel=False, use_gate_in_kernel=False, A_log=None,
                                     dt_bias=None, use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False, state_v_first=False,
                                     cu_seqlens=None, **kwargs):
    state_v_first = _state_v_first("fused_recurrent_gated_delta_rule", kwargs, state_v_first)
    _refuse("fused_recurrent_gated_delta_rule", kwargs, gv=gv)
    g = _head_gate("fused_recurrent_gated_delta_rule", g, use_gate_in_kernel, A_log, dt_bias)
    if g is not None and gk is not None:
        gk = gk + g.unsqueeze(-1)
    return _delta("fused_recurrent_gated_delta_rule", q, k, v, g if gk is None else gk, beta, scale, initial_state, output_final_state,
                  use_qk_l2norm_in_kernel, state_v_first, cu_seqlens, use_beta_sigmoid_in_kernel, allow_neg_eigval)


fused_recurrent_gdn = fused_recurrent_gated_delta_rule


def _kda_gate(g, A_log, dt_bias, lower_bound):
    kind = _arithmetic(g)
    g = g.to(kind) + (0 if dt_bias is None else dt_bias.to(kind).view(g.shape[-2:]))
    if lower_bound is not None:
        return lower_bound * (g if A_log is None else A_log.to(kind).exp().view(-1, 1) * g).sigmoid()
    return -A_log.to(kind).exp().view(-1, 1) * F.softplus(g)


def chunk_kda(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False,
              use_gate_in_kernel=False, use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False, safe_gate=False, lower_bound=None,
              disable_recompute=False, return_intermediate_states=False, state_v_first=False, cu_seqlens=None, cu_seqlens_cpu=None,
              cp_context=None, use_graph=False, max_num_seqs=None, *, A_log=None, dt_bias=None, **kwargs):
    """Kimi Delta Attention; g [B, T, H, K] is the logarithm of the decay of every key channel."""
    state_v_first = _state_v_first("chunk_kda", kwargs, state_v_first)
    _refuse("chunk_kda", kwargs, return_intermediate_states=return_intermediate_states, cp_context=cp_context)
    if use_gate_in_kernel:
        if A_log is None and lower_bound is None:
            raise ValueError("chunk_kda: expected A_log beside use_gate_in_kernel=True")
        g = _kda_gate(g, A_log, dt_bias, lower_bound)
    return _delta("chunk_kda", q, k, v, g, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, state_v_first,
                  cu_seqlens, use_beta_sigmoid_in_kernel, allow_neg_eigval)


def fused_recurrent_kda(q, k, v, g, beta, A_log=None, dt_bias=None, scale=None, initial_state=None, output_final_state=False,
                        use_qk_l2norm_in_kernel=False, use_gate_in_kernel=False, use_beta_sigmoid_in_kernel=False,
                        allow_neg_eigval=False, lower_bound=None, state_v_first=False, cu_seqlens=None, **kwargs):
    return chunk_kda(q, k, v, g, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, use_gate_in_kernel,
                     use_beta_sigmoid_in_kernel, allow_neg_eigval, lower_bound=lower_bound, state_v_first=state_v_first,
                     cu_seqlens=cu_seqlens, A_log=A_log, dt_bias=dt_bias, **kwargs)


def chunk_rwkv6(r, k, v, w, u, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None, cu_seqlens_cpu=None, *,
                reverse=False, **kwargs):
    """RWKV-6: w [B, T, H, K] is the logarithm of the decay, u [H, K] the bonus of the token itself."""
    _refuse("chunk_rwkv6", kwargs)
    return _through("chunk_rwkv6", laws.channel_decay, {"q": r, "k": k, "v": v, "log_decay": w, "bonus": u}, read="before", scale=scale,
                    initial_state=initial_state, output_final_state=output_final_state, cu_seqlens=cu_seqlens, reverse=reverse)


def fused_recurrent_rwkv6(r, k, v, w, u, scale=None, initial_state=None, output_final_state=False, reverse=False, cu_seqlens=None):
    return chunk_rwkv6(r, k, v, w, u, scale, initial_state, output_final_state, cu_seqlens, reverse=reverse)


def chunk_dplr_delta_rule(q, k, v, a, b, gk, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None,
                          cu_seqlens_cpu=None, safe_gate=False, chunk_size=None, disable_recompute=False, cp_context=None,
                          lower_bound=None, *, reverse=False, **kwargs):
    """S = diag(exp gk) S + b (a . S) + k v: diagonal plus low rank."""
    _refuse("chunk_dplr_delta_rule", kwargs, cp_context=cp_context)
    return _through("chunk_dplr_delta_rule", laws.delta, {"q": q, "k": k, "v": v, "log_decay": gk, "a": a, "b": b}, scale=scale,
                    initial_state=initial_state, output_final_state=output_final_state, cu_seqlens=cu_seqlens, reverse=reverse)


def fused_recurrent_dplr_delta_rule(q, k, v, a, b, gk, scale=None, initial_state=None, output_final_state=False, reverse=False,
                                    cu_seqlens=None):
    return chunk_dplr_delta_rule(q, k, v, a, b, gk, scale, initial_state, output_final_state, cu_seqlens, reverse=reverse)


def chunk_iplr_delta_rule(q, k, v, a, b, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None, cu_seqlens_cpu=None,
                          **kwargs):
    """Identity plus low rank: the same without a decay."""
    _refuse("chunk_iplr_delta_rule", kwargs)
    return chunk_dplr_delta_rule(q, k, v, a, b, torch.zeros_like(a), scale, initial_state, output_final_state, cu_seqlens)


def fused_recurrent_iplr_delta_rule(q, k, v, a, b, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None):
    return chunk_iplr_delta_rule(q, k, v, a, b, scale, initial_state, output_final_state, cu_seqlens)


def chunk_rwkv7(r, w, k, v, a, b, scale=1.0, initial_state=None, output_final_state=False, cu_seqlens=None, cu_seqlens_cpu=None,
                safe_gate=False, chunk_size=None, disable_recompute=False, cp_context=None, lower_bound=None):
    """RWKV-7; w is the logarithm of the decay."""
    return chunk_dplr_delta_rule(r, k, v, a, b, w, scale, initial_state, output_final_state, cu_seqlens, cp_context=cp_context)


def fused_recurrent_rwkv7(r, w, k, v, a, b, scale=None, initial_state=None, output_final_state=True, cu_seqlens=None):
    return chunk_rwkv7(r, w, k, v, a, b, scale, initial_state, output_final_state, cu_seqlens)


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
