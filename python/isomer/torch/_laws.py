"""Laws, and the kernels that layers have beside them, as operations of PyTorch: one way to differentiate carries them all."""
from functools import lru_cache

import torch
from torch import Tensor
from torch.autograd import forward_ad

from isomer import _engine
from isomer import _laws
from isomer._arrays import text_of, thread_count
from isomer.torch._operation import Operation

_KINDS = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2, torch.float16: 3, torch.int64: 4, torch.int32: 5}
_TYPES = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64}
_KERNELS = {kernel["name"]: kernel for kernel in _engine.kernels()}
_SPECS = {law["name"]: law for law in _engine.laws()} | _KERNELS
_DIFFERENTIABLE = {(law, x["name"]) for law, spec in _SPECS.items() for x in spec["inputs"] + spec["outputs"] if x["differentiable"]}


def address_of(what: str, name: str, x):
    """Where a tensor is, as the engine reads it, and what keeps it there; a ValueError for one that it cannot read."""
    if not isinstance(x, Tensor):
        raise ValueError(f"{what}: expected {name} to be a tensor of PyTorch as the others are, got {type(x).__name__}")
    if not x.is_cpu:
        raise ValueError(f"{what}: expected {name} in the memory of the CPU, got {x.device}")
    kind = _KINDS.get(x.dtype)
    if kind is None:
        raise ValueError(f"{what}: expected {name} of type float32, float64, bfloat16 or float16 (offsets: int64), got {x.dtype}")
    if x.is_neg():  # a view whose sign is to be turned by whoever reads it
        x = x.resolve_neg()
    try:
        return x.data_ptr(), kind, tuple(x.shape), x.stride(), x
    except RuntimeError as problem:
        got = "one of vmap or of batched gradients" if x.layout == torch.strided else f"one of the layout {x.layout}"
        raise ValueError(f"{what}: expected {name} as a dense tensor, got {got}") from problem


def torch_empty(shape, kind: str):
    x = torch.empty(shape, dtype=_TYPES[kind], device="cpu")  # whatever the default device is
    return x, (x.data_ptr(), _KINDS[x.dtype], tuple(x.shape), x.stride())


@lru_cache(maxsize=256)
def _bound(law: str, options: str):
    return _bound_to(law, tuple(tuple(option.split("=", 1)) for option in options.split("\n") if option))


@lru_cache(maxsize=256)
def _bound_to(law: str, options: tuple):
    if law in _KERNELS:
        return _engine.BoundKernel(law, {name: text_of(law, name, value) for name, value in options})
    return _laws._bound(law, options)


def _arrays(law: str, names, tensors) -> dict:
    return {name: address_of(law, name, x) for name, x in zip(names, tensors)}


@lru_cache(maxsize=1024)
def _parts(call: str) -> tuple:
    """(names of tensors, law, options, form, threads) of a call."""
    names, law, options, form, threads = call.split("\t")
    return tuple(names.split()), law, options, form, int(threads)


def _forward(call: str, tensors, record: bool) -> list[Tensor]:
    names, law, options, form, threads = _parts(call)
    bound, arrays = _bound(law, options), _arrays(law, names, tensors)
    made = bound.forward(arrays, form, threads, torch_empty) if record else bound(arrays, form, threads, torch_empty, False)
    return list(made.values())


def _backward(call: str, tensors, outputs, grads: dict, wanted, tape: Tensor) -> list[Tensor]:
    names, law, options, form, threads = _parts(call)
    made_names = _known_outputs(call)
    arrays = _arrays(law, names, tensors) | _arrays(law, [f"grad_{made_names[i]}" for i in grads], grads.values())
    asked = [f"grad_{names[i]}" for i in wanted]
    made = _bound(law, options).backward(arrays, _arrays(law, made_names, outputs), set(asked), form, threads, torch_empty, tape.data_ptr())
    return [made[name] for name in asked]


@lru_cache(maxsize=1024)
def _known_outputs(call: str) -> tuple:
    names, law, options, _, _ = _parts(call)
    return tuple(name for name, _ in _bound(law, options).outputs(set(names)))


@torch.compiler.assume_constant_result
def _output_names(call: str) -> tuple:
    return _known_outputs(call)


def _differentiable(call: str):
    names, law, *_ = _parts(call)
    return tuple([tuple([(law, name) in _DIFFERENTIABLE for name in side]) for side in (names, _known_outputs(call))])


def _shapes(call: str, tensors) -> list[Tensor]:
    names, law, options, _, _ = _parts(call)
    bound = _bound(law, options)
    sizes = _sizes(bound, dict(zip(names, tensors)))
    floating = next(x for x in tensors if x.is_floating_point())
    return [floating.new_empty([sizes[letter] for letter in axes]) for _, axes in bound.outputs(set(names))]


# Tensors that are absent are left out; names say which are there. Outputs of kernels are not read again: who has them may change them.
_LAW = Operation("law", forward=_forward, backward=_backward, shapes=_shapes, differentiable=_differentiable,
                 keeps_outputs=lambda call: _parts(call)[1] not in _KERNELS)


def _sizes(bound, tensors: dict) -> dict:
    """Sizes of axes by letter, from shapes that may be symbols. The engine checks them when it runs."""
    sizes = {}
    for name, letters in bound.inputs(set(tensors)):
        if len(letters) == tensors[name].dim():
            for letter, size in zip(letters, tensors[name].shape):
                sizes.setdefault(letter, size)
    heads = [sizes[letter] for letter in ("Gq", "Gk", "Gv") if letter in sizes]
    if heads:
        sizes["H"] = heads[0]
        for other in heads[1:]:
            sizes["H"] = torch.sym_max(sizes["H"], other)
    offsets = tensors.get("offsets")
    sizes["n"] = sizes["B"] if offsets is None else offsets.shape[0] - 1
    if "W" in sizes:  # tokens before the first that a convolution sees
        sizes["P"] = sizes["W"] - 1
    return sizes


def run(law: str, arrays: dict, options: tuple, form: str, threads: int | None) -> dict:
    """A law on tensors by name, absent ones left out -> its outputs by name: what the functions call."""
    own = arrays["v"] if "v" in arrays else arrays.get("x")
    narrow = isinstance(own, Tensor) and own.dtype in (torch.bfloat16, torch.float16)
    if narrow:
        arrays = {name: x.float() if isinstance(x, Tensor) and x.is_floating_point() else x for name, x in arrays.items()}
    count = thread_count(threads)
    record, others = torch.is_grad_enabled(), torch.compiler.is_compiling() or torch._C._is_tracing()
    needed, wrapped = False, forward_ad._current_level >= 0  # which knows its tensors by itself
    for x in arrays.values():
        needed = needed or getattr(x, "requires_grad", False)
        if not others and isinstance(x, Tensor):
            others = type(x) is not Tensor and type(x) is not torch.nn.Parameter
            wrapped = wrapped or torch._C._functorch.is_functorch_wrapped_tensor(x)
    record = record and needed
    if not (record or others or wrapped):
        addresses = {name: address_of(law, name, x) for name, x in arrays.items()}
        made = _bound_to(law, options)(addresses, form, count, torch_empty, False)
    else:
        if not others and not wrapped:
            [address_of(law, name, x) for name, x in arrays.items()]
        said = "\n".join([f"{name}={text_of(law, name, value)}" for name, value in options])
        call = f"{' '.join(arrays)}\t{law}\t{said}\t{form}\t{count}"
        values = _LAW.op(list(arrays.values()), call, record) if others else _LAW.recorded(call, arrays.values())
        made = dict(zip(_output_names(call), values))
    if narrow:
        made = {name: x.to(own.dtype) if name in ("o", "h", "h_imag") else x for name, x in made.items()}
    return made

