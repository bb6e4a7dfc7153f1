"""The functions of isomer.fla on the law of the delta rule, and on its form with a diagonal plus low rank."""
import torch
import torch.nn.functional as F

from isomer import torch as laws
from isomer._fla import _arithmetic, _refuse, _state_v_first, _through


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


def _kda_gate(name, g, A_log, dt_bias, lower_bound):
    if A_log is None and lower_bound is None:
        raise ValueError(f"{name}: expected A_log beside use_gate_in_kernel=True")
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
        g = _kda_gate("chunk_kda", g, A_log, dt_bias, lower_bound)
    return _delta("chunk_kda", q, k, v, g, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, state_v_first,
                  cu_seqlens, use_beta_sigmoid_in_kernel, allow_neg_eigval)


def fused_recurrent_kda(q, k, v, g, beta, A_log=None, dt_bias=None, scale=None, initial_state=None, output_final_state=False,
                        use_qk_l2norm_in_kernel=False, use_gate_in_kernel=False, use_beta_sigmoid_in_kernel=False,
                        allow_neg_eigval=False, lower_bound=None, state_v_first=False, cu_seqlens=None, **kwargs):
    return chunk_kda(q, k, v, g, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, use_gate_in_kernel,
                     use_beta_sigmoid_in_kernel, allow_neg_eigval, lower_bound=lower_bound, state_v_first=state_v_first,
                     cu_seqlens=cu_seqlens, A_log=A_log, dt_bias=dt_bias, **kwargs)


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


def _normalised(*keys):
    return (x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt() for x in keys)


def _on_all_heads(name, kind, heads, *keys):
    """Keys [B, T, G, K] of all heads, of which heads / G share one."""
    for x in keys:
        if x.shape[2] == 0 or heads % x.shape[2] != 0:
            raise ValueError(f"{name}: expected q and k with a number of heads that divides the {heads} of v, got {x.shape[2]}")
    return (x.to(kind).repeat_interleave(heads // x.shape[2], 2) for x in keys)


def _erasing(name, q, v, g, erase, key, write, **options):
    """S = D S - key (erase . D S) + key write with D = diag(exp g), g [B, T, H, K]: low rank, whose a reads S before it decays."""
    o, final = _through(name, laws.delta, {"q": q, "k": key, "v": write, "log_decay": g, "a": g.exp() * erase[0], "b": -erase[1]}, **options)
    return o.to(v.dtype), final


def chunk_comba(q, k, v, p, g, beta=None, scale=None, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False,
                cu_seqlens=None, cu_seqlens_cpu=None):
    """Comba: what p finds in the state is erased at k; p is k where it is None."""
    kind, heads = _arithmetic(v), v.shape[2]
    q, k, p = _on_all_heads("chunk_comba", kind, heads, q, k, k if p is None else p)
    if use_qk_l2norm_in_kernel:
        q, k, p = _normalised(q, k, p)
    beta = (torch.ones_like(v[..., 0]) if beta is None else beta).to(kind).unsqueeze(-1)
    return _erasing("chunk_comba", q, v, g.to(kind).unsqueeze(-1).expand_as(k), (p, beta * k), k, beta * v, scale=scale,
                    initial_state=initial_state, output_final_state=output_final_state, cu_seqlens=cu_seqlens)


def fused_recurrent_comba(q, k, p, v, g, beta=None, scale=None, initial_state=None, output_final_state=False,
                          use_qk_l2norm_in_kernel=False, cu_seqlens=None):
    return chunk_comba(q, k, v, p, g, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, cu_seqlens)


def chunk_gdn2(q, k, v, g, b, w, scale=None, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False,
               use_gate_in_kernel=False, cu_seqlens=None, cu_seqlens_cpu=None, safe_gate=False, lower_bound=None, disable_recompute=False,
               return_intermediate_states=False, state_v_first=False, cp_context=None, *, A_log=None, dt_bias=None, **kwargs):
    """Gated DeltaNet 2: g, b [B, T, H, K] decay and erase every key channel, w [B, T, H, V] writes every value channel."""
    state_v_first = _state_v_first("chunk_gdn2", kwargs, state_v_first)
    _refuse("chunk_gdn2", kwargs, return_intermediate_states=return_intermediate_states, cp_context=cp_context)
    kind, heads = _arithmetic(v), v.shape[2]
    if use_gate_in_kernel:
        g = _kda_gate("chunk_gdn2", g, A_log, dt_bias, lower_bound)
    q, k = _on_all_heads("chunk_gdn2", kind, heads, q, k)
    if use_qk_l2norm_in_kernel:
        q, k = _normalised(q, k)
    return _erasing("chunk_gdn2", q, v, g.to(kind), (b.to(kind) * k, k), k, w.to(kind) * v, scale=scale, initial_state=initial_state,
                    output_final_state=output_final_state, state_v_first=state_v_first, cu_seqlens=cu_seqlens)


def fused_recurrent_gdn2(q, k, v, g, b, w, A_log=None, dt_bias=None, scale=None, initial_state=None, output_final_state=False,
                         use_qk_l2norm_in_kernel=False, use_gate_in_kernel=False, lower_bound=None, state_v_first=False, cu_seqlens=None,
                         **kwargs):
    return chunk_gdn2(q, k, v, g, b, w, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, use_gate_in_kernel, cu_seqlens,
                      lower_bound=lower_bound, state_v_first=state_v_first, A_log=A_log, dt_bias=dt_bias, **kwargs)


def chunk_gated_delta_product(q, k, v, g, beta, num_householder, scale=None, initial_state=None, output_final_state=False,
                              use_qk_l2norm_in_kernel=False, cu_seqlens=None, cu_seqlens_cpu=None, cp_context=None):
    """Gated DeltaProduct: k, v, beta have num_householder steps for each token of q and g, which may be None."""
    name, n = "chunk_gated_delta_product", num_householder
    _refuse(name, {}, cp_context=cp_context)
    if k.shape[1] != n * q.shape[1]:
        raise ValueError(f"{name}: expected {n} keys for each of {q.shape[1]} queries, got {k.shape[1]}")
    last = lambda x: torch.stack([torch.zeros_like(x)] * (n - 1) + [x], 2).flatten(1, 2)
    decay = None if g is None else torch.stack([g] + [torch.zeros_like(g)] * (n - 1), 2).flatten(1, 2)
    o, final = _delta(name, last(q), k, v, decay, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, False,
                      None if cu_seqlens is None else cu_seqlens * n)
    return o[:, n - 1 :: n], final


__all__ = [name for name in globals() if name.startswith(("chunk_", "fused_"))]
