"""Products with weights in models of others: when they are ours."""
import functools

import torch
import torch.nn.functional as F

from isomer import torch as laws

_ROWS = 64  # so many are worth a call of ours, which costs some ten microseconds more than one of PyTorch


def linear_forward(self, input):
    """nn.Linear's, on ours where that is worth it."""
    exact = input.dtype == self.weight.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    if not exact or not input.is_cpu or input.numel() < _ROWS * self.in_features:
        return F.linear(input, self.weight, self.bias)
    return laws.linear(input, self.weight, self.bias)


@functools.lru_cache(maxsize=1)
def products_are_slow() -> bool:
    """Intel's library in PyTorch multiplies float32 with plainer instructions on the machines of others."""
    try:
        with open("/proc/cpuinfo") as info:
            vendor = next((line.split(":")[1].strip() for line in info if line.startswith("vendor_id")), "")
    except OSError:
        return False
    return torch.backends.mkl.is_available() and vendor not in ("", "GenuineIntel")
