"""What laws and mixers share as operations of PyTorch: how they are recorded and go back, eagerly and under torch.compile."""
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Operation:
    """A function of the engine on a list of tensors, with gradients. `call` says in one text all that is not a tensor.

    forward(call, tensors, record) -> outputs; with `record` one more, the tape: what forward leaves for backward.
    backward(call, tensors, outputs, grads, wanted, tape) -> the gradients of tensors[i] for i in wanted; grads has the gradient of
    outputs[i] by i.
    shapes(call, tensors) -> outputs without numbers. differentiable(call) -> of which tensors and of which outputs there are gradients.
    owner(call): what must live as long as the graph does. keeps_outputs(call): whether backward reads outputs.
    """

    def __init__(self, name: str, *, forward: Callable, backward: Callable, shapes: Callable, differentiable: Callable,
                 owner: Callable[[str], Any] = lambda call: None, keeps_outputs: Callable[[str], bool] = lambda call: True):
        self.name, self.forward, self.backward = name, forward, backward
        self.differentiable, self.owner, self.keeps_outputs = differentiable, owner, keeps_outputs
        self.op, self._op_backward = self._make_op(shapes), self._make_op_backward()
        self.op.register_autograd(self._op_gradient, setup_context=self._setup_op)

    def recorded(self, call: str, tensors) -> tuple[Tensor, ...]:
        """The eager way, which transformations of torch.func know, too; torch.compile, tracing and subclasses of tensors take `op`."""
        return _Recorded.apply(self, call, *tensors)

    def _make_op(self, shapes):
        # Schemas in words: PyTorch 2.6 does not read list[Tensor].
        @torch.library.custom_op(f"isomer::{self.name}", mutates_args=(), device_types="cpu",
                                 schema="(Tensor[] tensors, str call, bool record) -> Tensor[]")
        def op(tensors, call, record):
            return list(self.forward(call, tensors, record))

        @op.register_fake
        def _(tensors, call, record):
            return shapes(call, tensors) + ([torch.empty(1, dtype=torch.uint8, device="cpu")] if record else [])

        return op

    def _make_op_backward(self):
        @torch.library.custom_op(f"isomer::{self.name}_backward", mutates_args=(), device_types="cpu",
                                 schema="(Tensor[] tensors, Tensor[] outputs, Tensor[] grads, int[] arrived, int[] wanted, str call, "
                                        "Tensor tape) -> Tensor[]")
        def op(tensors, outputs, grads, arrived, wanted, call, tape):
            return self.backward(call, tensors, outputs, dict(zip(arrived, grads)), wanted, tape)

        @op.register_fake
        def _(tensors, outputs, grads, arrived, wanted, call, tape):
            return [tensors[i].new_empty(tensors[i].shape) for i in wanted]

        return op

    def _setup_op(self, ctx, inputs, output):
        tensors, call, ctx.record = inputs
        if ctx.record:
            self.save(ctx, call, tensors, output)

    def _op_gradient(self, ctx, grads):
        if not ctx.record:
            raise RuntimeError(f"isomer: expected a forward pass that was recorded; call the {self.name} with gradients enabled")
        return self.go_back(ctx, grads, ctx.needs_input_grad[0], self._op_backward), None, None

    def save(self, ctx, call: str, tensors, outputs) -> None:
        *made, tape = outputs
        ctx.call, ctx.inputs, ctx.owner = call, len(tensors), self.owner(call)
        ctx.save_for_backward(*tensors, *(made if self.keeps_outputs(call) else ()), tape)

    def go_back(self, ctx, grads, needed, gradients) -> list:
        """The gradient of each tensor of the call, or None."""
        *kept, tape = ctx.saved_tensors  # once: checkpointing computes them again at every look
        inputs, outputs = self.differentiable(ctx.call)
        wanted = [i for i, own in enumerate(inputs) if own and needed[i]]
        arrived = [i for i, own in enumerate(outputs) if own and grads[i] is not None]
        made = gradients(kept[: ctx.inputs], kept[ctx.inputs :], [grads[i] for i in arrived], arrived, wanted, ctx.call, tape)
        by_place = dict(zip(wanted, made))
        return [by_place.get(i) for i in range(ctx.inputs)]


class _NotMapped(torch.autograd.Function):
    """What transformations of torch.func are refused with one line of ours."""

    @staticmethod
    def vmap(info, in_dims, operation, *rest):
        raise RuntimeError(f"isomer: expected a {operation.name} without vmap (jacrev, hessian), which it does not have; give the sequences as "
                           "a batch")

    @staticmethod
    def jvp(ctx, *tangents):
        raise RuntimeError("isomer: expected gradients that go back (vjp, grad), got forward mode (jvp, jacfwd), which is not there")


class _Recorded(_NotMapped):
    @staticmethod
    def forward(operation, call, *tensors):
        return tuple(operation.forward(call, tensors, True))

    @staticmethod
    def setup_context(ctx, inputs, output):
        operation, call, *tensors = inputs
        *made, tape = output
        ctx.operation = operation
        ctx.mark_non_differentiable(tape, *[x for x, own in zip(made, operation.differentiable(call)[1]) if not own])
        operation.save(ctx, call, tensors, output)

    @staticmethod
    def backward(ctx, *grads):
        back = lambda tensors, outputs, grads, *rest: _Backward.apply(ctx.operation, (len(tensors), len(outputs)), *rest, *tensors, *outputs, *grads)
        return None, None, *ctx.operation.go_back(ctx, grads, ctx.needs_input_grad[2:], back)


class _Backward(_NotMapped):
    """A function of its own, so that transformations unwrap what they kept."""

    @staticmethod
    def forward(operation, counts, arrived, wanted, call, tape, *tensors):
        inputs, outputs = counts
        grads = dict(zip(arrived, tensors[inputs + outputs :]))
        return tuple(operation.backward(call, tensors[:inputs], tensors[inputs : inputs + outputs], grads, wanted, tape))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.name = inputs[0].name

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(f"isomer: expected gradients of a {ctx.name}'s outputs, got a gradient of a gradient, which {ctx.name}s do not have")
