"""PyTorch on the CPU: SDPA, plain-torch chunk forms (torch_forms.py) and the native chunkwise form of mlstm_kernels."""

import functools

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

from peers import laws, torch_forms
from peers.worker import Form, Skip, main


CAVEATS = {"native_custbw": "mlstm_kernels' own backward leaves out the gradient through the denominator"}


def prepare(case, x):
    torch.set_num_threads(case["threads"])
    # torch's own layout, [B, H, T, D], so that no time goes into transposes.
    tensors = {name: torch.from_numpy(x[name].swapaxes(1, 2).copy()) for name in x if name in ("q", "k", "v", "grad_o")}
    for name in ("log_decay", "log_input"):
        if name in x:
            tensors[name] = torch.from_numpy(laws.log_decay({"q": x["q"], "log_decay": x[name]}).swapaxes(1, 2).copy())
    if case["direction"] == "step":
        return steps(case, x, tensors)
    functions = attention(case, tensors) if case["subject"] == "attention" else scalar_decay(case, tensors)
    return [form(case, name, function, inputs, tensors.get("grad_o")) for name, (function, inputs) in functions.items()]


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
        return mlstm(case, t)
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


def mlstm(case, t):
    """mlstm_kernels takes the gate before its log-sigmoid, so the given log decay is inverted first."""
    kernels = mlstm_kernels()
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


def mlstm_kernels():
    try:
        from mlstm_kernels.torch.chunkwise import native
    except Exception as problem:
        raise Skip(f"mlstm_kernels: {problem}") from problem
    return native


def logit(log_decay):
    return log_decay - torch.log(-torch.expm1(log_decay))


def form(case, name, function, inputs, grad_o):
    """The function as a timed form: alone, or with the gradients of all its inputs."""
    last = {}
    if grad_o is None:
        values = list(inputs.values())

        def run():
            with torch.inference_mode():
                last["o"] = function(*values)
    else:
        leaves = [value.requires_grad_() for value in inputs.values()]

        def run():
            last["o"] = out = function(*leaves)
            last["grads"] = torch.autograd.grad(out, leaves, grad_o)

    def result():
        arrays = {"o": last["o"]} | {f"grad_{n}": g for n, g in zip(inputs, last.get("grads", ()))}
        if case["variant"] == "mlstm" and grad_o is not None:
            arrays["grad_log_decay"] = arrays["grad_log_decay"] / torch.sigmoid(-inputs["log_decay"])
        return {n: np.ascontiguousarray(a.detach().numpy().swapaxes(1, 2)) for n, a in arrays.items()}

    return Form(name, run, result, CAVEATS.get(name.split()[0], ""))


def steps(case, x, t):
    """One token on a state: the state is read, and the new one written beside it, so that every call does the same."""
    if case["subject"] == "attention":
        if case["variant"] != "causal":
            raise Skip("one token in a window is plain SDPA on the window")
        return [form(case, "sdpa", sdpa, {name: t[name] for name in "qkv"}, None)]
    state = torch.from_numpy(x["initial_state"])
    if case["variant"] == "mlstm":
        return [mlstm_step(case, x, t, state)]
    k, v, q = t["k"].transpose(-1, -2), t["v"], t["q"] * case["K"] ** -0.5
    decay, new = t.get("log_decay"), torch.empty_like(state)

    def step():
        if decay is None:
            torch.addcmul(state, k, v, out=new)
        else:
            torch.mul(state, decay.exp()[..., None], out=new)
            new.addcmul_(k, v)
        return q @ new

    return [form(case, "addcmul", step, {}, None)]


def mlstm_step(case, x, t, state):
    mlstm_kernels()
    from mlstm_kernels.torch.recurrent.native_step import mlstm_recurrent_step__native_fw

    norm, top = torch.from_numpy(x["initial_norm"]), torch.from_numpy(x["initial_max"])[..., None]
    q, k, v = (t[name].squeeze(2) for name in "qkv")
    gate = logit(t["log_decay"])

    def step():
        return mlstm_recurrent_step__native_fw(state, norm, top, q, k, v, t["log_input"], gate)[0].unsqueeze(2)

    return form(case, "native_step", step, {}, None)


if __name__ == "__main__":
    main("torch_cpu", prepare, lambda: f"torch {torch.__version__}")
