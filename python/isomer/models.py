"""Trained models: logits, gradients, streams and text."""
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isomer import _engine
from isomer._arrays import by_name, empty_like_kind, is_tensor, readable, seed_of, thread_count, whole


_MOST_TOKENS, _MOST_SEQUENCES = 2**53, 2**31


class Stream:
    """What is remembered of the tokens seen so far. copy() forks the stream, save() keeps it; it can be pickled, with what it is of."""

    _stream: Any
    _owner: Any  # whose load_state() reads what save() writes

    def copy(self):
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _stream=self._stream.copy())
        return other

    __copy__ = copy

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder) / "state")
            return _restored, (self._owner, (Path(folder) / "state").read_bytes())

    def save(self, path) -> None:
        """A safetensors file, which load_state() reads."""
        self._stream.save(os.fspath(path))

    @property
    def positions(self) -> list[int]:
        """Tokens seen so far of each sequence."""
        return self._stream.positions

    @property
    def bytes(self) -> int:
        """Of all numbers that are kept."""
        return self._stream.bytes

    def _seen(self) -> str:
        """Tokens of each sequence, in words."""
        seen = set(self.positions)
        tokens = ", ".join(map(str, self.positions)) if len(seen) > 1 else str(*seen)
        return f"{len(self.positions)} sequence{'s' * (len(self.positions) > 1)} after {tokens} tokens"


def _restored(owner, numbers: bytes):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "state").write_bytes(numbers)
        return owner.load_state(Path(folder) / "state")


class State(Stream):
    """What a model remembers of the tokens it has seen. copy() forks the stream, save() keeps it."""

    def __init__(self, stream: _engine.Stream, model: "Model"):
        self._stream, self._owner = stream, model

    def prefill(self, tokens, *, threads: int | None = None):
        """Takes in tokens [B, T] (or [T] of one sequence) -> the logits behind the last of each, [B, vocabulary]."""
        return self._stream.prefill(_integers("tokens", tokens), thread_count(threads), empty_like_kind([tokens]))

    def step(self, tokens, *, threads: int | None = None):
        """Takes in one token of each sequence, [B] -> logits [B, vocabulary]."""
        return self._stream.step(_integers("tokens", tokens), thread_count(threads), empty_like_kind([tokens]))

    def __repr__(self):
        return f"<isomer.State of {self._owner.path}: {self._seen()}, {self.bytes} bytes>"


class Model:
    """A model from a run's folder, a model's (ours or one of Hugging Face), or a GGUF file; isomer.load(path) makes one."""

    def __init__(self, path, *, weights: str = "float32"):
        if weights not in ("float32", "bf16"):
            raise ValueError(f"load: expected weights float32 or bf16, got {weights!r}")
        self.path = os.path.expanduser(path)
        self._weights = weights
        self._model = _engine.Model(self.path, weights)
        if self._model.left_out:
            warnings.warn(f"{self.path}: {self._model.left_out}", stacklevel=3)

    def __reduce__(self):
        return _loaded, (self.path, self._weights)

    @property
    def kind(self) -> str:
        return self._model.kind

    @property
    def vocabulary(self) -> int:
        return self._model.vocabulary

    @property
    def width(self) -> int:
        return self._model.width

    @property
    def layers(self) -> list[str]:
        """The preset of every layer."""
        return self._model.layers

    def run(self, tensors, *, stream: bool = False, gradients: bool = False, threads: int | None = None) -> dict:
        """`isomer logits` on arrays: tokens [B, T] (mask, offsets, targets; pixels or inputs for models of vectors) -> hidden,
        logits, with targets loss, and with gradients=True grad.NAME for every weight."""
        by_name("run", "tensors", tensors)
        integers = {"tokens", "types", "mask", "offsets"} | ({"targets"} if "tokens" in tensors else set())
        arrays = {name: _integers(name, x) if name in integers else readable("logits", name, x) for name, x in tensors.items()}
        return self._model.run(arrays, stream, gradients, thread_count(threads), empty_like_kind(tensors.values()))

    def logits(self, tokens, *, offsets=None, threads: int | None = None):
        """tokens [B, T] -> logits [B, T, vocabulary]; of classifiers [B, classes]."""
        tensors = {"tokens": tokens} if offsets is None else {"tokens": tokens, "offsets": offsets}
        return self.run(tensors, threads=threads)["logits"]

    def start(self, batch: int = 1) -> State:
        """The state before the first token."""
        return State(self._model.start(whole("start: batch", batch, _MOST_SEQUENCES)), self)

    def load_state(self, path) -> State:
        return State(self._model.load_state(os.fspath(path)), self)

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Tokens of a text; special: with those that the model expects around it, such as [CLS]."""
        return self._model.encode(text, special)

    def decode(self, tokens) -> str:
        return self._text(tokens, False)

    def _text(self, tokens, follows: bool) -> str:
        return self._model.decode([int(token) for token in tokens], follows).decode(errors="replace")

    def stream(self, prompt: str, tokens: int = 200, *, chat: bool = False, temperature: float = 0.8, top_k: int = 0, top_p: float = 1.0,
               seed: int = 1, state: State | None = None, threads: int | None = None) -> Iterator[int]:
        """Tokens behind the prompt, one at a time, as `isomer generate` draws them, up to where the model ends. chat: the prompt is
        what a user says to a model that was taught conversations."""
        if self.kind != "language":
            raise ValueError(f"generate: expected a language model, got one of the kind {self.kind}")
        if not isinstance(prompt, str):
            raise ValueError(f"generate: expected a text, got {type(prompt).__name__}")
        tokens = whole("generate: tokens", tokens, _MOST_TOKENS)
        state = self.start() if state is None else state
        sampler = _engine.Sampler(temperature, top_k, top_p, seed_of("generate", seed))
        read = self._model.prompt(prompt, chat, state.positions[0] == 0)
        if not read:
            raise ValueError("generate: expected a prompt of at least one token, got none")
        ends = set(self._model.ends)
        logits = state.prefill(np.array([read]), threads=threads)
        for _ in range(tokens):
            token = sampler(logits[0])
            if token in ends:
                return
            yield token
            logits = state.step(np.array([token]), threads=threads)

    def generate(self, prompt: str, tokens: int = 200, **options) -> str:
        """The prompt and what follows it, of a chat the answer alone; options of stream()."""
        follows = self._text(self.stream(prompt, tokens, **options), True)
        return prompt + follows if self._model.is_text and not options.get("chat") else follows

    def embed(self, texts, *, threads: int | None = None) -> np.ndarray:
        """The vectors of texts, of length one, by an encoder: [texts, width]. Their products are cosines. Longer texts are cut."""
        if self.kind != "embedding":
            raise ValueError(f"embed: expected an encoder of texts, got one of the kind {self.kind}")
        if isinstance(texts, str):
            raise ValueError("embed: expected a list of texts, got one text")
        texts = list(texts)
        for text in texts:
            if not isinstance(text, str):
                raise ValueError(f"embed: expected a list of texts, got one with {text!r}")
        return np.asarray(self._model.embed(texts, thread_count(threads), empty_like_kind([])))

    def save(self, folder) -> None:
        """As a model's folder, which needs no run."""
        self._model.save(os.fspath(folder))

    def __repr__(self):
        layers = ", ".join(f"{count} x {name}" for name, count in Counter(self.layers).items())
        tokens = f", vocabulary {self.vocabulary}" if self.vocabulary else ""
        return f"<isomer.Model {self.path}: {self.kind}, {layers}, width {self.width}{tokens}>"


def load(path, *, weights: str = "float32") -> Model:
    """The model of a run's folder, of a model's, ours or one of Hugging Face, or of a GGUF file. weights="bf16" keeps matrices so: half
    the memory, and half as much to read."""
    return Model(path, weights=weights)


def _loaded(path: str, weights: str) -> Model:
    return Model(path, weights=weights)


def _integers(name: str, x):
    """Whole numbers of any type, where the engine reads them; others are refused, not rounded."""
    if is_tensor(x):
        if x.is_floating_point() or x.is_complex():
            raise ValueError(f"{name}: expected integers, got {x.dtype}")
        return readable("logits", name, x.long())
    x = np.from_dlpack(x) if hasattr(x, "__dlpack__") and not isinstance(x, np.ndarray) else np.asarray(x)
    if x.size > 0 and x.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected integers, got {x.dtype}")
    return x.astype(np.int64, copy=False)
