"""Arrays of the caller's own library, and how many threads work on them."""
import os

import numpy as np

_NUMPY_TYPES: dict[str, np.dtype] = {"F32": np.dtype(np.float32), "F64": np.dtype(np.float64), "I64": np.dtype(np.int64)}
_threads = int(os.environ.get("ISOMER_THREADS", 0))


def set_threads(count: int) -> None:
    """How many threads calls take that do not say so; 0: one for each core. At first ISOMER_THREADS, or 0."""
    global _threads
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"set_threads: expected a number of threads from 0 on, got {count!r}")
    _threads = count


def threads() -> int:
    """What set_threads() said."""
    return _threads


def thread_count(given: int | None) -> int:
    return _threads if given is None else given


def numpy_empty(shape: list[int], kind: str) -> np.ndarray:
    return np.empty(shape, _NUMPY_TYPES[kind])


def empty_like_kind(arrays):
    """What makes outputs: arrays of PyTorch for one of PyTorch, of NumPy for all others."""
    for array in arrays:
        if type(array).__module__ == "torch":
            from isomer.torch import torch_empty

            return torch_empty
    return numpy_empty
