"""Every mixer as a linear dynamical system h_t = L_t h_{t-1} + B_t u_t, y_t = C_t h_t + D_t u_t, on given inputs."""
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from isomer import _engine
from isomer._arrays import by_name, readable, seed_of, text_of


@dataclass(frozen=True, repr=False)
class System:
    """One head of a law on one sequence. Where `groups` is 1 the matrices serve all channels, else there is one for each.

    L_t = diag(decay[t]) + left[t] right[t]^T. Numbers are complex where the law is.
    """

    decay: np.ndarray  # [T, groups, features]
    B: np.ndarray  # [T, groups, features]
    C: np.ndarray  # [T, groups, features]
    D: np.ndarray  # [T, groups]
    matrix: np.ndarray  # [groups, T, T]: the effective attention matrix, y = matrix u
    memory_horizon: float  # for how many tokens a token keeps 1 % of its largest influence
    channels: int
    left: np.ndarray | None = None
    right: np.ndarray | None = None
    law: str = ""
    head: int = 0

    def transition(self, t: int, group: int = 0) -> np.ndarray:
        """L_t as a matrix, [features, features]."""
        full = np.diag(self.decay[t, group])
        return full if self.left is None or self.right is None else full + np.outer(self.left[t, group], self.right[t, group])

    def eigenvalues(self, t: int, group: int = 0) -> np.ndarray:
        return np.linalg.eigvals(self.transition(t, group))

    def __repr__(self) -> str:
        T, groups, features = self.decay.shape
        return (f"<isomer.System of {self.law or 'a law'}, head {self.head}: {T} tokens, state of {features} x {self.channels}, "
                f"remembered for {self.memory_horizon:.1f}>")

    def _repr_html_(self) -> str:
        """|matrix| as a picture, for notebooks; the mean where every channel has one, and of many tokens the largest of each square."""
        weights = np.abs(self.matrix).mean(0)
        T, most = len(weights), 96
        if T > most:
            edges = np.linspace(0, T, most, endpoint=False).astype(int)
            weights = np.maximum.reduceat(np.maximum.reduceat(weights, edges, 0), edges, 1)
        weights = weights / max(float(weights.max(initial=0)), 1e-30)
        n = len(weights)
        cell = max(1, 320 // max(n, 1))
        rows = "".join(f'<rect x="{j * cell}" y="{i * cell}" width="{cell}" height="{cell}" fill-opacity="{weights[i, j]:.2f}"/>'
                       for i in range(n) for j in range(n) if weights[i, j] >= 0.005)
        return (f"<p>{self.law or 'law'}, head {self.head}: {T} tokens, remembered for {self.memory_horizon:.1f}</p>"
                f'<svg width="{n * cell}" height="{n * cell}" role="img" aria-label="effective attention" fill="#3b6fb6">{rows}</svg>')


class Systems(list):
    """The systems of a preset, of every law and head; in a notebook they draw themselves."""

    def _repr_html_(self) -> str:
        return "".join(system._repr_html_() for system in self)


def _system(found: dict) -> System:
    real: dict[str, Any] = {name: x.real.copy() if isinstance(x, np.ndarray) and not x.imag.any() else x for name, x in found.items()}
    return System(**real)


def dsf(name: str, inputs, options: Mapping | None = None, *, sequence: int = 0, head: int = 0, seed: int = 1):
    """The system of a law on its tensors (a dict as for apply(); -> System), or those of every law and head of a preset with
    random weights on x [T, width] (-> Systems, a list)."""
    text = {key: text_of(name, key, value) for key, value in by_name("dsf", "options", options or {}).items()}
    if isinstance(inputs, Mapping):
        arrays = {key: readable(name, key, x) for key, x in by_name("dsf", "tensors", inputs).items()}
        found = _engine.dsf_of_law(name, arrays, text, sequence, head)
        return _system({**found, "law": name, "head": head})
    return Systems(_system(found) for found in _engine.dsf_of_preset(name, readable(name, "x", inputs), text, seed_of("dsf", seed)))
