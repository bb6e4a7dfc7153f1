"""Names of mlstm_kernels on the laws: q, k [B, H, T, K], v [B, H, T, V], i and f [B, H, T], gates before their nonlinearity."""
import torch.nn.functional as F

from isomer import torch as laws


def mlstm_chunkwise(q, k, v, i, f, c_initial=None, n_initial=None, m_initial=None, return_last_states=False, eps=1e-6, **kwargs):
    """-> h [B, H, T, V], and with return_last_states (h, (C [B, H, K, V], n [B, H, K], m [B, H, 1]))."""
    for key, value in kwargs.items():
        if key not in ("chunk_size", "autocast_kernel_dtype", "chunkwise_kernel", "sequence_kernel", "step_kernel"):
            raise ValueError(f"mlstm: expected no {key}, which changes nothing that the law does, got {value!r}")
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    m = None if m_initial is None else m_initial.reshape(m_initial.shape[:2])
    r = laws.scalar_decay(q, k, v, log_decay=F.logsigmoid(f).transpose(1, 2), log_input=i.transpose(1, 2), normaliser="max", eps=eps,
                          initial_state=c_initial, initial_norm=n_initial, initial_max=m)
    h = r.o.transpose(1, 2)
    return (h, (r.final_state, r.final_norm, r.final_max.unsqueeze(-1))) if return_last_states else h


mlstm_parallel = mlstm_recurrent = mlstm_chunkwise

__all__ = ["mlstm_chunkwise", "mlstm_parallel", "mlstm_recurrent"]
