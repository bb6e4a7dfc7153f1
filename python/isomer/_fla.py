"""What the functions of isomer.fla share: which options are refused, and how a law stands behind theirs."""
import torch
from torch import Tensor

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
