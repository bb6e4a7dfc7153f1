"""PyTorch on the CPU: SDPA, plain-torch chunk forms (torch_forms.py) and packages that run on it (torch_packages.py)."""

import functools

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

from peers import laws, torch_forms, torch_packages
from peers.worker import Form, Skip, main


CAVEATS = {"native_custbw": "mlstm_kernels' own backward leaves out the gradient through the denominator"}
# Laws whose functions take tensors as they are; the others want torch's own layout, [B, H, T, D].
PACKAGES = {"delta": torch_packages.delta, "scan": torch_packages.scan}


def prepare(case, x):
    torch.set_num_threads(case["threads"])
    if case["subject"] in PACKAGES:
        tensors = {name: torch.from_numpy(array) for name, array in x.items()}
        functions = PACKAGES[case["subject"]](case, tensors)
    else:
        tensors = heads_first(x)
        if case["direction"] == "step":
            return steps(case, x, tensors)
        functions = FORMS[case["subject"]](case, tensors)
    grads = [tensors["grad_" + name] for name in laws.outputs(case) if "grad_" + name in tensors]
    return [form(case, name, function, inputs, *grads) for name, (function, inputs) in functions.items()]


def heads_first(x):
    """[B, H, T, D], so that no time goes into transposes. What has no time, such as bonus, stays as it is."""
    if x.get("log_decay", x["q"]).ndim == 1:
        x = x | {"log_decay": laws.log_decay(x)}
    return {name: torch.from_numpy(array.swapaxes(1, 2).copy() if time_first(name) else array) for name, array in x.items()}


def time_first(name):
    return name.removeprefix("grad_") not in ("bonus", "initial_state", "initial_norm", "initial_max")


def attention(case, t):
    inputs = {name: t[name] for name in "qkv"}
    if case["variant"] == "causal":
        return {"sdpa": (functools.partial(sdpa, is_causal=True), inputs)}
    mask = torch.from_numpy(laws.visible(case, case["T"], case["T"]))
    functions = {
        f"sdpa blocks of {block}": (torch_forms.window_blocks(case["window"], block, case["T"]), inputs)
        for block in (64, 128, 256)
        if case["T"] % block == 0
    }
    return functions | {"sdpa mask": (functools.partial(sdpa, attn_mask=mask), inputs)}


def scalar_decay(case, t):
    if case["variant"] == "mlstm":
        return torch_packages.mlstm(case, t)
    inputs = {name: t[name] for name in "qkv"}
    decay = t.get("log_decay")
    if case["variant"] == "gated":
        inputs["log_decay"] = decay

    def bound(function, chunk):
        # A fixed decay is a constant of the model, a gate is an input with a gradient.
        return lambda q, k, v, gate=decay: function(q, k, v, gate, chunk)

    return {
        f"{function.__name__} {chunk}": (bound(function, chunk), inputs)
        for function in torch_forms.CHUNK_FORMS
        for chunk in torch_forms.CHUNKS
        if case["T"] % chunk == 0
    }


def channel_decay(case, t):
    inputs = {name: t[name] for name in ("q", "k", "v", "log_decay", "bonus") if name in t}

    def bound(function, chunk):
        return lambda q, k, v, log_decay, bonus=None: function(q, k, v, log_decay, bonus, chunk)

    return {
        f"{function.__name__} {chunk}": (bound(function, chunk), inputs)
        for function in torch_forms.CHANNEL_FORMS
        for chunk in torch_forms.CHANNEL_CHUNKS
        if case["T"] % chunk == 0
    }


def form(case, name, function, inputs, grad=None):
    """The function as a timed form: alone, or with the gradients of all its inputs."""
    last, out_name = {}, laws.outputs(case)[0]
    if grad is None:
        values = list(inputs.values())

        def run():
            with torch.inference_mode():
                last["out"] = function(*values)
    else:
        leaves = [value.requires_grad_() for value in inputs.values()]

        def run():
            last["out"] = out = function(*leaves)
            last["grads"] = torch.autograd.grad(out, leaves, grad)

    def result():
        arrays = {out_name: last["out"]} | {f"grad_{n}": g for n, g in zip(inputs, last.get("grads", ()))}
        if case["variant"] == "mlstm" and grad is not None:
            arrays["grad_log_decay"] = arrays["grad_log_decay"] / torch.sigmoid(-inputs["log_decay"])
        swapped = [n for n in arrays if case["subject"] not in PACKAGES and time_first(n)]
        arrays = {n: a.detach().numpy() for n, a in arrays.items()}
        return {n: np.ascontiguousarray(a.swapaxes(1, 2) if n in swapped else a) for n, a in arrays.items()}

    return Form(name, run, result, CAVEATS.get(name.split()[0], ""))


def steps(case, x, t):
    """One token on a state: the state is read, and the new one written beside it, so that every call does the same."""
    if case["subject"] == "attention":
        if case["variant"] != "causal":
            raise Skip("one token in a window is plain SDPA on the window")
        return [form(case, "sdpa", sdpa, {name: t[name] for name in "qkv"})]
    if case["variant"] == "mlstm":
        return [form(case, "native_step", torch_packages.mlstm_step(x, t), {})]
    k, v, q = t["k"].transpose(-1, -2), t["v"], t["q"] * case["K"] ** -0.5
    state = t["initial_state"]
    new, decay, bonus = torch.empty_like(state), t.get("log_decay"), t.get("bonus")
    if decay is not None:
        decay = decay.transpose(-1, -2) if decay.ndim == 4 else decay[..., None]

    def step():
        if decay is None:
            torch.addcmul(state, k, v, out=new)
        else:
            torch.mul(state, decay.exp(), out=new)
            new.addcmul_(k, v)
        if bonus is None:
            return q @ new
        return q @ state + (q * bonus[:, None]) @ k * v

    return [form(case, "addcmul", step, {})]


FORMS = {"attention": attention, "scalar_decay": scalar_decay, "channel_decay": channel_decay}

if __name__ == "__main__":
    main("torch_cpu", prepare, torch_packages.versions)
