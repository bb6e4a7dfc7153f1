"""Pictures with matplotlib, where it is installed: curves of runs and effective attention matrices.

    isomer.plot.curves([run, other])                       # loss over steps
    isomer.plot.attention("gla", x)                        # what every head of a mixer attends to
"""
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from isomer.engine import Run
from isomer.systems import System, dsf


def _axes(axes, count: int = 1):
    """The caller's axes, or new ones in a row."""
    if axes is not None:
        return np.atleast_1d(axes)
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError("isomer.plot: matplotlib is not installed; pip install matplotlib") from missing
    return plt.subplots(1, count, figsize=(3.2 * count if count > 1 else 6, 3), squeeze=False, layout="constrained")[1][0]


def curves(runs: "Run | Iterable[Run]", value: str = "loss", *, axes: Any = None):
    """A value of metrics.jsonl over steps, a line a run; values of evaluations are named as in their `eval`. -> the axes."""
    runs = [runs] if isinstance(runs, Run) else list(runs)
    ax = _axes(axes)[0]
    for run in runs:
        lines = [(line["step"], line.get(value, line.get("eval", {}).get(value) if isinstance(line.get("eval"), Mapping) else None))
                 for line in run.metrics]
        points = [(step, number) for step, number in lines if number is not None]
        if not points:
            raise ValueError(f"plot: expected {value!r} among the metrics of {run.path}, got none")
        ax.plot(*zip(*points), label=run.path.name)
    ax.set(xlabel="step", ylabel=value)
    if len(runs) > 1:
        ax.legend(frameon=False)
    return ax


def attention(of: "str | System | Iterable[System]", x=None, options: Mapping | None = None, *, axes: Any = None):
    """|effective attention matrices| as images, queries down and keys across: of systems that dsf() made, or of every head of a preset
    on x [T, width]. Where a system has a matrix for each channel, their mean. -> the axes."""
    systems = dsf(of, x, options) if isinstance(of, str) else [of] if isinstance(of, System) else list(of)
    systems = [systems] if isinstance(systems, System) else systems
    found = _axes(axes, len(systems))
    for ax, system in zip(found, systems):
        ax.imshow(np.abs(system.matrix).mean(0), cmap="magma_r", interpolation="nearest")
        ax.set(title=f"{system.law or 'law'}, head {system.head}", xlabel="key", ylabel="query")
    return found
