"""Laws from PyPI packages that run on PyTorch's CPU: transformers (delta rules), mambapy (scans), mlstm_kernels.

Each function returns {name: (function, inputs by name)}, as torch_cpu.py times them. Tensors are in the layout of the
contracts, [B, T, H, D], except for mlstm_kernels, which wants [B, H, T, D].
"""

import contextlib
import functools
import importlib
import inspect
import types
from importlib import metadata

import torch

from peers.worker import Skip


def versions():
    """Of PyTorch and of what is installed beside it."""
    found = []
    for package in ("torch", "mlstm_kernels", "transformers", "mambapy"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{package} {metadata.version(package)}")
    return ", ".join(found)


def load(module):
    try:
        return importlib.import_module(module)
    except Exception as problem:  # some of them fail in many ways
        raise Skip(f"{module}: {problem}") from problem


def delta(case, t):
    """The torch functions of two models, without the GPU kernels that transformers would take instead of them."""
    if case["variant"] == "rwkv7":
        raise Skip("no chunk form of this rule in transformers")
    if case["variant"] == "kda":
        if case["direction"] == "forward+backward":
            raise Skip("the time of this form's gradient grows with the square of the length")
        if case["T"] > 2048:
            raise Skip("left out beyond T=2048, because this form takes seconds a call")
        module = load("transformers.models.kimi_linear.modeling_kimi_linear")
        chunk, recurrent = module.chunk_kimi_delta_attention, module.recurrent_kimi_delta_attention
    else:
        module = load("transformers.models.qwen3_next.modeling_qwen3_next")
        chunk, recurrent = module.torch_chunk_gated_delta_rule, module.torch_recurrent_gated_delta_rule
    inputs = {name: t[name] for name in ("q", "k", "v", "beta")}
    no_decay = torch.zeros_like(inputs["beta"])
    if "log_decay" in t:
        inputs["log_decay"] = t["log_decay"]

    def bound(function, **options):
        function = inspect.unwrap(function)
        return lambda q, k, v, beta, log_decay=no_decay: function(q, k, v, g=log_decay, beta=beta, **options)[0]

    if case["direction"] == "step":
        return {"recurrent": (bound(recurrent, initial_state=t["initial_state"], output_final_state=True), inputs)}
    # With a decay per key channel it stores chunk x K numbers per token, so that long chunks are slow. The time of the
    # gradient grows with the square of the number of chunks, so that short ones are.
    sizes = (16, 32) if case["variant"] == "kda" else (32, 64, 128) if case["direction"] == "forward" else (64, 128, 256)
    sizes = [size for size in sizes if case["T"] % size == 0 and (case["direction"] == "forward" or case["T"] <= 128 * size)]
    return {f"chunk {size}": (bound(chunk, chunk_size=size), inputs) for size in sizes}


def scan(case, t):
    """mambapy's two ways: a tree over time, and a loop. Both add a skip D x, here with D = 0."""
    if case["variant"] == "complex":
        raise Skip("mambapy has no complex scan")
    if case["direction"] == "step":
        raise Skip("mambapy's step is part of a whole block")
    if case["variant"] == "real":
        pscan = load("mambapy.pscan").pscan
        inputs = {name: t[name] for name in ("log_decay", "x")}
        return {"pscan": (lambda log_decay, x: pscan(log_decay.exp()[..., None], x[..., None])[..., 0], inputs)}
    inputs = {name: t[name] for name in ("x", "step", "a", "b", "c")}
    channels, size = t["a"].shape
    block = types.SimpleNamespace(config=types.SimpleNamespace(d_inner=channels, d_state=size))
    skip = torch.zeros(channels)
    methods = load("mambapy.mamba").MambaBlock
    # The gradient of the loop makes a tensor of the whole length for every token, so it is left out.
    ways = [methods.selective_scan] + ([methods.selective_scan_seq] if case["direction"] == "forward" else [])
    return {way.__name__: (functools.partial(lambda way, *given: way(block, *given, skip), way), inputs) for way in ways}


def mlstm(case, t):
    """mlstm_kernels takes the gate before its log-sigmoid, so the given log decay is inverted first."""
    kernels = load("mlstm_kernels.torch.chunkwise.native")
    inputs = {name: t[name] for name in "qkv"} | {"log_input": t["log_input"], "log_decay": logit(t["log_decay"])}
    forms = [kernels.mlstm_chunkwise__native_autograd]
    if "grad_o" in t:
        forms.append(kernels.mlstm_chunkwise__native_custbw)
    return {
        f"{function.__name__.rpartition('__')[2]} {chunk}": (functools.partial(function, chunk_size=chunk), inputs)
        for function in forms
        for chunk in (64, 128)
        if case["T"] % chunk == 0
    }


def mlstm_step(x, t):
    step = load("mlstm_kernels.torch.recurrent.native_step").mlstm_recurrent_step__native_fw
    state, norm, top = (torch.from_numpy(x[f"initial_{name}"]) for name in ("state", "norm", "max"))
    q, k, v = (t[name].squeeze(2) for name in "qkv")
    gate = logit(t["log_decay"])
    return lambda: step(state, norm, top[..., None], q, k, v, t["log_input"], gate)[0].unsqueeze(2)


def logit(log_decay):
    return log_decay - torch.log(-torch.expm1(log_decay))
