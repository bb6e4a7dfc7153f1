"""Softmax attention of Hugging Face transformers, through its registry of attention functions, by the name "isomer"."""
import sys

import torch
import torch.nn.functional as F
from torch import Tensor

from isomer import torch as laws


def arithmetic(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def attention_forward(module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, sliding_window=None,
                      position_bias=None, softcap=None, s_aux=None, cu_seq_lens_q=None, **kwargs):
    """query [B, H, T, K], key and value [B, G, S, K] -> [B, T, H, V]: transformers' signature. Queries are the last T positions.
    A mask, a bias of positions, sink logits or dropout is computed by PyTorch."""
    if softcap is not None:
        raise ValueError("isomer: expected attention without softcap, which the law does not have; take eager")
    causal = is_causal if is_causal is not None else getattr(module, "is_causal", True)
    T, S = query.shape[2], key.shape[2]
    if attention_mask is not None or position_bias is not None or s_aux is not None or dropout > 0 or not query.is_cpu:
        return _masked(query, key, value, attention_mask, dropout, scaling, causal, sliding_window, position_bias, s_aux), None
    kind = arithmetic(query)
    q, k, v = (x.transpose(1, 2).to(kind) for x in (query, key, value))
    window = sliding_window if sliding_window and sliding_window < S else None
    o = laws.attention(q, k, v, scale=scaling, causal=bool(causal), window=window,
                       offsets=cu_seq_lens_q if cu_seq_lens_q is not None and T == S else None).o
    return o.to(query.dtype), None


def _masked(query, key, value, mask, dropout, scaling, causal, window, bias, sinks):
    T, S, groups = query.shape[2], key.shape[2], query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
    i, j = torch.arange(S - T, S)[:, None], torch.arange(S)
    seen = torch.ones(T, S, dtype=torch.bool)
    if causal:
        seen = seen & (j <= i)
    if window:
        seen = seen & (i - j < window) & (j - i < window)
    seen = seen[None, None]
    if mask is not None and mask.dim() == 2:
        seen = seen & mask[:, None, None, -S:].bool()
        seen = seen | ~seen.any(-1, keepdim=True)  # a query of padding sees something, which nobody reads
    elif mask is not None:
        seen = mask
    if bias is not None:
        seen = bias.masked_fill(~seen, torch.finfo(query.dtype).min) if seen.dtype == torch.bool else bias + seen
    if sinks is not None:  # one more key without a value, whose logit is the head's own
        if seen.dtype == torch.bool:
            seen = torch.zeros(seen.shape, dtype=query.dtype).masked_fill(~seen, float("-inf"))
        logits = sinks.to(query.dtype).reshape(1, -1, 1, 1).expand(query.shape[0], -1, T, 1)
        seen = torch.cat([seen.expand(*logits.shape[:3], -1), logits], -1)
        key, value = F.pad(key, (0, 0, 0, 1)), F.pad(value, (0, 0, 0, 1))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=seen, dropout_p=dropout, scale=scaling).transpose(1, 2).contiguous()


def _slides(mask_function, window: int, first: int, count: int) -> bool:
    """Whether a query sees the last `window` keys; masks of chunks come by the same arguments, but end elsewhere."""
    q = torch.arange(max(first, window), max(first + count, window))  # those before see all
    at = lambda kv: mask_function(torch.zeros_like(q), torch.zeros_like(q), q, kv)
    return bool(at(q - window + 1).all()) and not bool(at(q - window).any())


def attention_mask(*, q_length, kv_length, q_offset=0, kv_offset=0, mask_function=None, attention_mask=None, local_size=None,
                   allow_is_causal_skip=True, **kwargs):
    """transformers' signature -> None where the law needs no mask: queries at the last positions, causal or of a sliding window, without
    padding. Else (packed sequences, blocks, chunks, caches that are not full) the mask that PyTorch's attention takes."""
    from transformers.masking_utils import sdpa_mask

    known = allow_is_causal_skip and q_offset + q_length == kv_offset + kv_length
    if known and (attention_mask is None or bool(attention_mask[:, -kv_length:].all())):
        if local_size is None or _slides(mask_function, local_size, int(q_offset), q_length):
            return None
    return sdpa_mask(q_length=q_length, kv_length=kv_length, q_offset=q_offset, kv_offset=kv_offset, mask_function=mask_function,
                     attention_mask=attention_mask, local_size=local_size, allow_is_causal_skip=False, **kwargs)


def register_attention() -> None:
    """Makes attn_implementation="isomer" known to transformers. accelerate() does it, and the import of isomer.torch behind that of
    transformers."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register("isomer", attention_forward)
    AttentionMaskInterface.register("isomer", attention_mask)


if "transformers" in sys.modules:
    register_attention()
