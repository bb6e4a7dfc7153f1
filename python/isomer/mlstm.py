"""Names of mlstm_kernels on the laws: q, k [B, H, T, K], v [B, H, T, V], i and f [B, H, T], gates before their nonlinearity.

Its kernels are the same function here, and take what chooses how a GPU works without an effect. The two that have a sigmoid as input
gate (siging) are not here.
"""
import torch
import torch.nn.functional as F

from isomer import torch as laws

_IGNORED = {"chunk_size", "chunk_size_inter", "chunk_size_intra", "siz_b_L_parallel", "siz_b_L_loop", "siz_b_DH_parallel", "siz_b_DH_loop",
            "siz_b_DHQK", "siz_b_DHHV", "num_warps", "num_stages", "num_warps_intra", "num_warps_inter", "num_stages_intra",
            "num_stages_inter", "recompute_states_in_bw", "autocast_kernel_dtype", "chunkwise_kernel", "sequence_kernel", "step_kernel"}


def mlstm_chunkwise(q, k, v, i, f, c_initial=None, n_initial=None, m_initial=None, return_last_states=False, eps=1e-6, chunk_size=64,
                    dtype_state=None, **kwargs):
    """-> h [B, H, T, V], and with return_last_states (h, (C [B, H, K, V], n [B, H, K], m [B, H, 1]))."""
    for key, value in kwargs.items():
        if key not in _IGNORED:
            raise ValueError(f"mlstm: expected no {key}, which is none of the law's options, got {value!r}")
    kind = torch.float64 if v.dtype == torch.float64 else torch.float32
    number = lambda x: None if x is None else x.to(kind)
    tokens = lambda x: number(x).transpose(1, 2)
    m = None if m_initial is None else number(m_initial).reshape(m_initial.shape[:2])
    r = laws.scalar_decay(tokens(q), tokens(k), tokens(v), log_decay=tokens(F.logsigmoid(number(f))), log_input=tokens(i), normaliser="max",
                          eps=eps, initial_state=number(c_initial), initial_norm=number(n_initial), initial_max=m)
    h = r.o.transpose(1, 2).to(v.dtype)
    if not return_last_states:
        return h
    return h, tuple(x if dtype_state is None else x.to(dtype_state) for x in (r.final_state, r.final_norm, r.final_max.unsqueeze(-1)))


def mlstm_recurrent_sequence__native_fw(q, k, v, i, f, c_initial=None, n_initial=None, m_initial=None, return_last_states=False, eps=1e-6,
                                        dtype_state=torch.float32, **kwargs):
    return mlstm_chunkwise(q, k, v, i, f, c_initial, n_initial, m_initial, return_last_states, eps, dtype_state=dtype_state, **kwargs)


def mlstm_recurrent_step__native(q, k, v, i, f, c, n, m, eps=1e-6, dtype_state=torch.float32, **kwargs):
    """One token: q, k [B, H, K], v [B, H, V], i, f, m [B, H, 1], c [B, H, K, V], n [B, H, K] -> (h [B, H, V], (c, n, m))."""
    h, states = mlstm_chunkwise(*(x.unsqueeze(2) for x in (q, k, v)), i, f, c, n, m, True, eps, dtype_state=dtype_state, **kwargs)
    return h.squeeze(2), states


mlstm_parallel = mlstm_recurrent = mlstm_chunkwise
mlstm_chunkwise__native_autograd = mlstm_chunkwise__native_custbw = mlstm_chunkwise__limit_chunk = mlstm_chunkwise
mlstm_chunkwise__xl_chunk = mlstm_parallel__native_autograd = mlstm_parallel__native_custbw = mlstm_chunkwise
mlstm_parallel__native_stablef_autograd = mlstm_parallel__native_stablef_custbw = mlstm_parallel__limit_headdim = mlstm_chunkwise
mlstm_recurrent_sequence__triton_step_fused_fw = mlstm_recurrent_sequence__triton_alternate_step_fw = mlstm_recurrent_sequence__native_fw
mlstm_recurrent_step__triton = mlstm_recurrent_step__triton_alternate = mlstm_recurrent_step__native

__all__ = [name for name in globals() if name.startswith("mlstm")]
