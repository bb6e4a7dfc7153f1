"""Laws, and the kernels that layers have beside them, as operations of PyTorch: one way to differentiate carries them all."""
from functools import lru_cache

import torch
from torch import Tensor

from isomer import _engine
from isomer import _laws
from isomer._arrays import text_of, thread_count

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
    return x.data_ptr(), kind, tuple(x.shape), x.stride(), x


def torch_empty(shape, kind: str):
    x = torch.empty(shape, dtype=_TYPES[kind])
    return x, (x.data_ptr(), _KINDS[x.dtype], tuple(x.shape), x.stride())


@lru_cache(maxsize=256)
def _bound(law: str, options: str):
    return _bound_to(law, tuple(tuple(option.split("=", 1)) for option in options.split("\n") if option))


@lru_cache(maxsize=256)
def _bound_to(law: str, options: tuple):
    if law in _KERNELS:
        return _engine.BoundKernel(law, {name: text_of(law, name, value) for name, value in options})
    return _laws._bound(law, options)


def _arrays(law: str, names: str, tensors) -> dict:
    return {name: address_of(law, name, x) for name, x in zip(names.split(), tensors)}


def _forward(tensors, names: str, law: str, options: str, form: str, threads: int, record: bool) -> list[Tensor]:
    """The outputs; with `record` the last one stands for what the forward pass leaves for the backward pass."""
    bound, arrays = _bound(law, options), _arrays(law, names, tensors)
    made = bound.forward(arrays, form, threads, torch_empty) if record else bound(arrays, form, threads, torch_empty, False)
    return list(made.values())


def _gradients(tensors, outputs, grads, names: str, grad_names: str, wanted: str, law: str, options: str, form: str, threads: int,
               tape: Tensor) -> list[Tensor]:
    arrays = _arrays(law, names, tensors) | _arrays(law, grad_names, grads)
    kept = _arrays(law, " ".join(_output_names(law, options, names)), outputs)
    made = _bound(law, options).backward(arrays, kept, set(wanted.split()), form, threads, torch_empty, tape.data_ptr())
    return [made[name] for name in wanted.split()]


@lru_cache(maxsize=1024)
def _known_outputs(law: str, options: str, names: str) -> tuple:
    return tuple(name for name, _ in _bound(law, options).outputs(set(names.split())))


@torch.compiler.assume_constant_result
def _output_names(law: str, options: str, names: str) -> tuple:
    return _known_outputs(law, options, names)


def _save(ctx, tensors, call, outputs):
    ctx.call, ctx.inputs = call, len(tensors)
    ctx.save_for_backward(*tensors, *outputs)


def _go_back(ctx, grads, needed, gradients) -> list:
    """The gradient of each tensor of the call, or None."""
    *kept, tape = ctx.saved_tensors  # once: checkpointing computes them again at every look
    tensors, outputs = kept[: ctx.inputs], kept[ctx.inputs :]
    all_names, law, options, form, threads = ctx.call
    names = all_names.split()
    wanted = [name for name, need in zip(names, needed) if need and (law, name) in _DIFFERENTIABLE]
    arrived = {name: grad for name, grad in zip(_output_names(law, options, all_names), grads)
               if grad is not None and (law, name) in _DIFFERENTIABLE}
    made = gradients(list(tensors), list(outputs), list(arrived.values()), all_names, " ".join([f"grad_{name}" for name in arrived]),
                     " ".join([f"grad_{name}" for name in wanted]), law, options, form, threads, tape)
    by_name = dict(zip(wanted, made))
    return [by_name.get(name) for name in names]


class _Law(torch.autograd.Function):
    """The eager way, which transformations of torch.func know, too. Tensors that are absent are left out; names say which are there."""

    @staticmethod
    def forward(call, *tensors):
        return tuple(_forward(tensors, *call, True))

    @staticmethod
    def setup_context(ctx, inputs, output):
        call, *tensors = inputs
        ctx.mark_non_differentiable(*[x for name, x in zip((*_output_names(call[1], call[2], call[0]), "tape"), output)
                                      if (call[1], name) not in _DIFFERENTIABLE])
        _save(ctx, tensors, call, output)

    @staticmethod
    def backward(ctx, *grads):
        back = lambda tensors, outputs, grads, *call: _LawBackward.apply(len(tensors), len(outputs), call, *tensors, *outputs, *grads, call[-1])
        return None, *_go_back(ctx, grads, ctx.needs_input_grad[1:], back)


class _LawBackward(torch.autograd.Function):
    """A function of its own, so that transformations unwrap what they kept."""

    @staticmethod
    def forward(inputs, outputs, call, *tensors):
        *tensors, tape = tensors
        return tuple(_gradients(tensors[:inputs], tensors[inputs : inputs + outputs], tensors[inputs + outputs :], *call[:-1], tape))

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError("isomer: expected gradients of a law's outputs, got a gradient of a gradient, which laws do not have")


# The same as ops, which torch.compile takes as they are.
@torch.library.custom_op("isomer::law", mutates_args=(), device_types="cpu")
def _law(tensors: list[Tensor], names: str, law: str, options: str, form: str, threads: int, record: bool) -> list[Tensor]:
    return _forward(tensors, names, law, options, form, threads, record)


@_law.register_fake
def _(tensors, names, law, options, form, threads, record):
    given = names.split()
    sizes = _sizes(_bound(law, options), dict(zip(given, tensors)))
    floating = next(x for x in tensors if x.is_floating_point())
    made = [floating.new_empty([sizes[letter] for letter in axes]) for _, axes in _bound(law, options).outputs(set(given))]
    return made + [torch.empty(1, dtype=torch.uint8)] if record else made


@torch.library.custom_op("isomer::law_backward", mutates_args=(), device_types="cpu")
def _law_backward(tensors: list[Tensor], outputs: list[Tensor], grads: list[Tensor], names: str, grad_names: str, wanted: str,
                  law: str, options: str, form: str, threads: int, tape: Tensor) -> list[Tensor]:
    return _gradients(tensors, outputs, grads, names, grad_names, wanted, law, options, form, threads, tape)


@_law_backward.register_fake
def _(tensors, outputs, grads, names, grad_names, wanted, law, options, form, threads, tape):
    given = dict(zip(names.split(), tensors))
    return [torch.empty(given[name.removeprefix("grad_")].shape, dtype=given[name.removeprefix("grad_")].dtype) for name in wanted.split()]


def _setup_context(ctx, inputs, output):
    tensors, *call, ctx.record = inputs
    _save(ctx, tensors, tuple(call), output)


def _backward(ctx, grads):
    if not ctx.record:
        raise RuntimeError("isomer: expected a forward pass that was recorded; call the law with gradients enabled")
    return _go_back(ctx, grads, ctx.needs_input_grad[0], _law_backward), None, None, None, None, None, None


_law.register_autograd(_backward, setup_context=_setup_context)


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
    record, others, wrapped = torch.is_grad_enabled(), torch.compiler.is_compiling(), False
    needed = False
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
        call = (" ".join(arrays), law, "\n".join([f"{name}={text_of(law, name, value)}" for name, value in options]), form, count)
        values = _law(list(arrays.values()), *call, record) if others else _Law.apply(call, *arrays.values())
        made = dict(zip(_output_names(law, call[2], call[0]), values))
    if narrow:
        made = {name: x.to(own.dtype) if name in ("o", "h", "h_imag") else x for name, x in made.items()}
    return made

