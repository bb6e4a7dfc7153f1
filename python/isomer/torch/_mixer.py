"""A layer of any preset as a module of PyTorch, with the engine's forward and backward, and streams over its state."""
import itertools
import os
import weakref

import torch
from torch import Tensor, nn

from isomer import _engine
from isomer._arrays import seed_of, text_of, thread_count, whole
from isomer.models import Stream
from isomer.torch._laws import address_of, torch_empty
from isomer.torch._operation import Operation

_mixers: "weakref.WeakValueDictionary[int, Mixer]" = weakref.WeakValueDictionary()
_numbers_of_mixers = itertools.count()


def _at(name: str, x):
    return None if x is None else address_of("mixer", name, x)


def _all_at(weights) -> list:
    return [address_of("mixer", "a weight", x) for x in weights]


def _checked(x) -> Tensor:
    """x, if it is a tensor of numbers that a mixer can take."""
    if not isinstance(x, Tensor):
        raise ValueError(f"mixer: expected x to be a tensor of PyTorch, got {type(x).__name__}")
    if not x.is_floating_point():
        raise ValueError(f"mixer: expected x of type float32, float64, bfloat16 or float16, got {x.dtype}")
    return x


def _dense(x: Tensor) -> Tensor:
    return x if x.is_contiguous() else x.contiguous()


def _split(call: str, tensors):
    """The mixer (None if it is gone), threads, and what its tensors are: x, weights, offsets."""
    mixer, threads, packed = map(int, call.split())
    x, *weights = tensors
    return _mixers.get(mixer), threads, x, weights, weights.pop() if packed else None


def _forward(call: str, tensors, record: bool) -> list[Tensor]:
    mixer, threads, x, weights, offsets = _split(call, tensors)
    return mixer._engine.forward(_at("x", x), _all_at(weights), _at("offsets", offsets), threads, record, torch_empty)


def _backward(call: str, tensors, outputs, grads: dict, wanted, tape: Tensor) -> list[Tensor]:
    """The mixer itself may be gone."""
    mixer, threads, x, weights, offsets = _split(call, tensors)
    made = _engine.mixer_backward(None if mixer is None else mixer._engine, _at("a gradient", grads[0]), _at("x", x), _all_at(weights),
                                  _at("offsets", offsets), threads, torch_empty, tape.data_ptr())
    return [made[i] for i in wanted]


def _owner(call: str) -> "Mixer":
    return _mixers[int(call.split()[0])]


def _differentiable(call: str):
    return (True, *_owner(call)._trained, *[False] * int(call.split()[2])), (True,)


_MIXER = Operation("mixer", forward=_forward, backward=_backward, shapes=lambda call, tensors: [tensors[0].new_empty(tensors[0].shape)],
                   differentiable=_differentiable, owner=_owner, keeps_outputs=lambda call: False)


class _Group(nn.Module):
    """Holds parameters whose names share a first word."""

    def _get_name(self):
        return ""

    def extra_repr(self):
        return ", ".join(f"{name}={list(x.shape)}" for own in (self._parameters, self._buffers) for name, x in own.items())


class MixerState(Stream):
    """What a mixer remembers of the tokens it has seen. copy() forks the stream, save() keeps it."""

    def __init__(self, mixer: "Mixer", stream):
        self._owner, self._stream = mixer, stream

    @torch.no_grad()
    def prefill(self, x: Tensor, *, threads: int | None = None) -> Tensor:
        """Takes in x [B, T, width] -> y [B, T, width], what forward gives for these tokens behind those before. No gradient."""
        weights = self._owner._numbers(_checked(x))
        made = self._stream.prefill(_at("x", x.to(weights[0].dtype)), _all_at(weights), thread_count(threads), torch_empty)
        return made.to(x.dtype)

    def step(self, x: Tensor, *, threads: int | None = None) -> Tensor:
        """Takes in one token of each sequence, [B, width] -> [B, width]."""
        if _checked(x).dim() != 2:
            raise ValueError(f"mixer: expected one token of each sequence, x [B, width], got {list(x.shape)}")
        return self.prefill(x.unsqueeze(1), threads=threads).squeeze(1)

    def __repr__(self):
        return f"<isomer.torch.MixerState of {self._owner.preset}: {self._seen()}, {self.bytes} bytes>"


class Mixer(nn.Module):
    """A layer of a preset: y = mixer(x) on x [B, T, width].

        mixer = isomer.torch.Mixer("gla", width=256, heads=8)          # options are those of `isomer show gla`
        y = mixer(x)                                                   # gradients for x and every parameter
        state = mixer.start(batch=1)
        state.prefill(prompt), state.step(token)                       # the same numbers, token by token

    Parameters have the names that checkpoints of Isomer have behind "layers.N.mixer.", and their shapes: load_layer() takes them
    from there, state_dict() goes back. `layer` of `layers` is where the layer stands, from which some presets start differently;
    parameters start from PyTorch's random numbers, or from `seed`. Unknown presets and options are ValueErrors that name the
    nearest.
    """

    def __init__(self, preset: str, width: int = 256, *, layer: int = 0, layers: int = 1, seed: int | None = None, **options):
        super().__init__()
        if not isinstance(preset, str):
            raise ValueError(f"mixer: expected the name of a preset, got {preset!r}")
        width, layer, layers = (whole(f"mixer: {name}", x, 2**20) for name, x in (("width", width), ("layer", layer), ("layers", layers)))
        self.preset, self.width = preset, width
        self._made_of = (preset, width, layer, layers, {name: text_of(preset, name, value) for name, value in options.items()})
        self._bind()
        seed = int(torch.randint(2**62, (), device="cpu")) if seed is None else seed_of("mixer", seed)
        self._names, self._trained = [], []
        for name, numbers, trained in self._engine.parameters(seed):
            group = self
            *words, last = name.split(".")
            for word in words:
                if word not in group._modules:
                    group.add_module(word, _Group())
                group = group._modules[word]
            if trained:
                group.register_parameter(last, nn.Parameter(numbers))
            else:
                group.register_buffer(last, numbers)
            self._names.append(name)
            self._trained.append(trained)

    def _bind(self):
        self._engine = _engine.Mixer(*self._made_of)
        self._number = next(_numbers_of_mixers)
        _mixers[self._number] = self

    @property
    def options(self) -> dict[str, str]:
        """Every option, as it was resolved."""
        return dict(self._engine.options)

    @property
    def causal(self) -> bool:
        return self._engine.causal

    def _numbers(self, x: Tensor) -> list[Tensor]:
        """All weights in the type of the arithmetic."""
        kind = torch.float64 if x.dtype == torch.float64 else torch.float32
        weights = []
        for name in self._names:
            own = self
            for word in name.split("."):
                own = getattr(own, word)
            weights.append(_dense(own.to(kind)))
        return weights

    def forward(self, x: Tensor, *, offsets: Tensor | None = None, threads: int | None = None) -> Tensor:
        """x [B, T, width] -> [B, T, width]; offsets [n + 1] packs n sequences into the only row."""
        weights = self._numbers(_checked(x))
        own, count = x.to(weights[0].dtype), thread_count(threads)
        wrapped = torch._C._functorch.is_functorch_wrapped_tensor
        record = torch.is_grad_enabled() and (x.requires_grad or any(w.requires_grad for w in weights))
        call = f"{self._number} {count} {int(offsets is not None)}"
        tensors = [own, *weights] if offsets is None else [own, *weights, offsets]
        if torch.compiler.is_compiling() or torch._C._is_tracing():
            y = _MIXER.op(tensors, call, record)[0]
        elif record or any(wrapped(y) for y in (own, *weights)):
            y = _MIXER.recorded(call, tensors)[0]
        else:
            y = _forward(call, tensors, False)[0]
        return y.to(x.dtype)

    def start(self, batch: int = 1) -> MixerState:
        """The state before the first token of so many sequences."""
        return MixerState(self, self._of_type("start")(batch))

    def load_state(self, path) -> MixerState:
        return MixerState(self, self._of_type("load")(os.fspath(path)))

    def _of_type(self, what: str):
        double = next(self.parameters()).dtype == torch.float64
        return getattr(self._engine, f"{what}_{'f64' if double else 'f32'}")

    def load_layer(self, weights: dict[str, Tensor], prefix: str) -> "Mixer":
        """Takes the parameters of a layer out of a checkpoint's, such as load_weights(run) has; prefix: "layers.0.mixer"."""
        own = {name: weights[full] for name in self._names
               if (full := name if name.startswith("shared.") else f"{prefix}.{name}") in weights}
        self.load_state_dict(own)
        return self

    def layer_weights(self, prefix: str) -> dict[str, Tensor]:
        """The other way: parameters under the names of a checkpoint."""
        return {name if name.startswith("shared.") else f"{prefix}.{name}": x for name, x in self.state_dict().items()}

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_engine"}

    def __setstate__(self, state):
        super().__setstate__(state)
        self._bind()

    def extra_repr(self):
        changed = "".join(f", {name}={value}" for name, value in self._engine.changed.items())
        return f"{self.preset!r}, width={self.width}{changed}"


def load_weights(path) -> dict[str, Tensor]:
    """The weights of a run's folder, of a model's, or of one safetensors file, by name; BF16 and F16 as float32."""
    from pathlib import Path

    folder = Path(path)
    for inside in ("checkpoints/latest/model.safetensors", "model.safetensors"):
        if (folder / inside).exists():
            return _engine.read_tensors(str(folder / inside), torch_empty)
    if (folder / "checkpoints" / "latest").is_file():
        return load_weights(folder / "checkpoints" / (folder / "checkpoints" / "latest").read_text().strip())
    return _engine.read_tensors(str(folder), torch_empty)


def save_weights(path, weights: dict[str, Tensor]) -> None:
    """A safetensors file with these tensors, which a model's folder may have as model.safetensors."""
    _engine.write_tensors(os.fspath(path), {name: x.detach().cpu().contiguous() for name, x in weights.items()})
