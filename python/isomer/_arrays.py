"""Arrays of the caller's own library, options as the engine reads them, and how many threads work."""
import operator
import os
import sys
from collections.abc import Mapping

import numpy as np

_NUMPY_TYPES: dict[str, np.dtype] = {"F32": np.dtype(np.float32), "F64": np.dtype(np.float64), "I64": np.dtype(np.int64)}
_MOST_THREADS = 4096


def whole(what: str, value, most: int) -> int:
    """A number from 0 to `most`, of Python or NumPy; a ValueError that names it for all else."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if isinstance(value, bool) or not 0 <= number <= most:
        raise ValueError(f"{what}: expected a whole number from 0 to {most}, got {value!r}")
    return number


def by_name(call: str, what: str, given) -> Mapping:
    """A dictionary whose keys are texts; a ValueError for all else."""
    if not isinstance(given, Mapping):
        raise ValueError(f"{call}: expected a dictionary of {what}, got {type(given).__name__}")
    for name in given:
        if not isinstance(name, str):
            raise ValueError(f"{call}: expected {what} by name, got {name!r}")
    return given


def _threads_of_environment() -> int:
    text = os.environ.get("ISOMER_THREADS", "0")
    return whole("ISOMER_THREADS", int(text) if text.isdigit() else text, _MOST_THREADS)


_threads = _threads_of_environment()


def set_threads(count: int) -> None:
    """How many threads calls take that do not say so; 0: one for each core. At first ISOMER_THREADS, or 0."""
    global _threads
    _threads = whole("set_threads", count, _MOST_THREADS)


def threads() -> int:
    """What set_threads() said."""
    return _threads


def thread_count(given: int | None) -> int:
    if given is None:
        return _threads
    return given if type(given) is int and 0 <= given <= _MOST_THREADS else whole("threads", given, _MOST_THREADS)


def seed_of(what: str, seed) -> int:
    return whole(f"{what}: seed", seed, 2**64 - 1)


def plain(what: str, name: str, value):
    """An option as a type of Python's own; numbers of NumPy and arrays of one number become one."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if getattr(value, "ndim", 1) == 0 and hasattr(value, "item"):
        return value.item()
    raise ValueError(f"{what}: expected {name} as a number, a text or a truth value, got {type(value).__name__}")


def text_of(what: str, name: str, value) -> str:
    """An option as the engine reads it."""
    value = plain(what, name, value)
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def is_tensor(x) -> bool:
    """Whether it is a tensor of PyTorch, which need not be installed."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, getattr(torch, "Tensor", ()))


def readable(what: str, name: str, x):
    """What the engine takes for an array: itself, or where a tensor of PyTorch is."""
    if isinstance(x, tuple):  # the engine reads one as the address of a tensor
        raise ValueError(f"{what}: expected an array as {name}, got a tuple")
    if not is_tensor(x):
        return x
    from isomer.torch._laws import address_of

    return address_of(what, name, x)


def numpy_empty(shape: list[int], kind: str) -> np.ndarray:
    return np.empty(shape, _NUMPY_TYPES[kind])


def empty_like_kind(arrays):
    """What makes outputs: arrays of PyTorch for one of PyTorch, of NumPy for all others."""
    if any(is_tensor(array) for array in arrays):
        from isomer.torch import torch_empty

        return torch_empty
    return numpy_empty
