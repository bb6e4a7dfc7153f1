"""Trained models: logits, gradients, streams and text."""
from collections.abc import Iterator
from typing import Any

import numpy as np

from isomer import _engine
from isomer._arrays import empty_like_kind, numpy_empty, thread_count


class Stream:
    """What is remembered of the tokens seen so far. copy() forks the stream, save() keeps it."""

    _stream: Any

    def copy(self):
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _stream=self._stream.copy())
        return other

    __copy__ = copy

    def save(self, path) -> None:
        """A safetensors file, which load_state() reads."""
        self._stream.save(str(path))

    @property
    def positions(self) -> list[int]:
        """Tokens seen so far of each sequence."""
        return self._stream.positions

    @property
    def bytes(self) -> int:
        """Of all numbers that are kept."""
        return self._stream.bytes


class State(Stream):
    """What a model remembers of the tokens it has seen. copy() forks the stream, save() keeps it."""

    def __init__(self, stream: _engine.Stream):
        self._stream = stream

    def prefill(self, tokens, *, threads: int | None = None):
        """Takes in tokens [B, T] (or [T] of one sequence) -> the logits behind the last of each, [B, vocabulary]."""
        return self._stream.prefill(_integers(tokens), thread_count(threads), empty_like_kind([tokens]))

    def step(self, tokens, *, threads: int | None = None):
        """Takes in one token of each sequence, [B] -> logits [B, vocabulary]."""
        return self._stream.step(_integers(tokens), thread_count(threads), empty_like_kind([tokens]))

    def __repr__(self):
        return f"<isomer.State after {', '.join(map(str, self.positions))} tokens, {self.bytes} bytes>"


class Model:
    """A model from a run's or a model's folder; isomer.load(path) makes one."""

    def __init__(self, path, *, weights: str = "float32"):
        if weights not in ("float32", "bf16"):
            raise ValueError(f"load: expected weights float32 or bf16, got {weights!r}")
        self.path = str(path)
        self._model = _engine.Model(self.path, weights)

    @property
    def kind(self) -> str:
        return self._model.kind

    @property
    def vocabulary(self) -> int:
        return self._model.vocabulary

    @property
    def width(self) -> int:
        return self._model.width

    def run(self, tensors, *, stream: bool = False, gradients: bool = False, threads: int | None = None) -> dict:
        """`isomer logits` on arrays: tokens [B, T] (mask, offsets, targets; pixels or inputs for models of vectors) -> hidden,
        logits, with targets loss, and with gradients=True grad.NAME for every weight."""
        arrays = {name: _integers(x) if name in ("tokens", "mask", "offsets") else x for name, x in tensors.items()}
        return self._model.run(arrays, stream, gradients, thread_count(threads), empty_like_kind(tensors.values()))

    def logits(self, tokens, *, offsets=None, threads: int | None = None):
        """tokens [B, T] -> logits [B, T, vocabulary]; of classifiers [B, classes]."""
        tensors = {"tokens": tokens} if offsets is None else {"tokens": tokens, "offsets": offsets}
        return self.run(tensors, threads=threads)["logits"]

    def start(self, batch: int = 1) -> State:
        """The state before the first token."""
        return State(self._model.start(batch))

    def load_state(self, path) -> State:
        return State(self._model.load_state(str(path)))

    def encode(self, text: str) -> list[int]:
        return self._model.encode(text)

    def decode(self, tokens) -> str:
        return self._model.decode([int(token) for token in tokens]).decode(errors="replace")

    def stream(self, prompt: str, tokens: int = 200, *, temperature: float = 0.8, top_k: int = 0, seed: int = 1,
               state: State | None = None, threads: int | None = None) -> Iterator[int]:
        """Tokens behind the prompt, one at a time, as `isomer generate` draws them."""
        state = self.start() if state is None else state
        sampler = _engine.Sampler(temperature, top_k, seed)
        read = self.encode(prompt)
        if not read:
            raise ValueError("generate: expected a prompt of at least one token, got none")
        logits = state.prefill(np.array([read]), threads=threads)
        for _ in range(tokens):
            token = sampler(logits[0])
            yield token
            logits = state.step(np.array([token]), threads=threads)

    def generate(self, prompt: str, tokens: int = 200, **options) -> str:
        """The prompt and what follows it; options of stream()."""
        follows = self.decode(list(self.stream(prompt, tokens, **options)))
        return prompt + follows if self._model.is_text else follows

    def save(self, folder) -> None:
        """As a model's folder, which needs no run."""
        self._model.save(str(folder))

    def __repr__(self):
        return f"<isomer.Model {self.path}: {self.kind}, width {self.width}>"


def load(path, *, weights: str = "float32") -> Model:
    """The model of a run's folder, or of a model's. weights="bf16" keeps matrices so: half the memory, and half as much to read."""
    return Model(path, weights=weights)


def _integers(x):
    return x if hasattr(x, "__dlpack__") else np.asarray(x, dtype=np.int64)
