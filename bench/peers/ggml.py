"""ggml's CPU backend, from the npm package @node-llama-cpp/linux-x64 below $ISOMER_BENCH_NPM.

Inputs are put into the form an operation wants before the clock starts (scaled queries, values divided by the
step of a Mamba-2 scan): the peer is timed on the operation alone.
"""

import functools
import json
import os
import pathlib

import numpy as np

from peers import laws
from peers.ggml_api import Ggml, Graph
from peers.worker import Form, Skip, main


PACKAGE = pathlib.Path(os.environ.get("ISOMER_BENCH_NPM", ".")) / "node_modules/@node-llama-cpp/linux-x64"


@functools.cache
def api():
    folder = PACKAGE / "bins" / "linux-x64"
    if not folder.is_dir():
        raise Skip("@node-llama-cpp/linux-x64 is not installed")
    return Ggml(str(folder))


def version():
    """The package's own version, and the ggml release it was built from where it says so."""
    text = json.loads((PACKAGE / "package.json").read_text())["version"]
    built = PACKAGE / "bins" / "linux-x64" / "_nlcBuildMetadata.json"
    if built.is_file():
        text += " with llama.cpp " + json.loads(built.read_text())["buildOptions"]["llamaCpp"]["release"]
    return f"@node-llama-cpp/linux-x64 {text}"


def prepare(case, x):
    if case["direction"] == "forward+backward":
        raise Skip("these operations have no gradient on the CPU")
    api().set_threads(case["threads"])
    return [operation(case, x) for operation in operations(case)]


def operations(case):
    if case["subject"] == "attention":
        return [flash_attention]
    if case["subject"] == "scan":
        if case["variant"] != "s6":
            raise Skip("ssm_scan does not give the state of every token")
        return [ssm_scan_per_channel]
    if case["subject"] == "channel_decay":
        return [rwkv_wkv6 if case["variant"] == "rwkv6" else gated_linear_attention]
    if case["subject"] == "delta":
        return [rwkv_wkv7 if case["variant"] == "rwkv7" else gated_delta_net]
    if case["variant"] == "mlstm":
        raise Skip("no operation with an input gate and a normaliser")
    return [ssm_scan, gated_linear_attention] if case["K"] == case["V"] else [ssm_scan]


def form(name, case, arrays, build):
    B, T, H, K, V = (case[n] for n in "BTHKV")
    shape = (B, T, H * K) if case["subject"] == "scan" else (B, T, H, V)
    graph = Graph(api(), arrays, build)
    return Form(name, graph.compute, lambda: {"o": graph.read(int(np.prod(shape))).reshape(shape)})


def flash_attention(case, x):
    """float32 keys and values; the mask is float16, the only type it takes."""
    T, S = x["q"].shape[1], x["k"].shape[1]
    arrays = {name: np.ascontiguousarray(x[name].transpose(0, 2, 1, 3)) for name in "qkv"}
    arrays["mask"] = np.where(laws.visible(case, T, S), 0, -np.inf).astype(np.float16)

    def build(graph, q, k, v, mask):
        return api().flash_attn_ext(graph.context, q, k, v, mask, case["K"] ** -0.5, 0.0, 0.0)

    return form("flash_attn_ext", case, arrays, build)


def ssm_scan(case, x):
    """Mamba-2: S = exp(step a) S + step B xᵀ, o = Sᵀ C, with the step before its softplus."""
    B, H, K, V = (case[n] for n in "BHKV")
    decay = laws.log_decay(x).astype(np.float64)
    gated = case["variant"] == "gated"
    step = np.maximum(-decay, 1e-6) if gated else np.ones_like(decay)
    arrays = {
        "s": np.swapaxes(x.get("initial_state", np.zeros((B, H, K, V), np.float32)), 2, 3),
        "x": (x["v"] / step[..., None]).astype(np.float32),
        "dt": np.log(np.expm1(step)).astype(np.float32),
        "A": (np.full((H, 1), -1.0) if gated else decay[0, 0, :, None]).astype(np.float32),
        "B": x["k"],
        "C": x["q"] * np.float32(K**-0.5),
        "ids": np.arange(B, dtype=np.int32),
    }

    def build(graph, s, x, dt, A, B, C, ids):
        return api().ssm_scan(graph.context, s, x, dt, A, B, C, ids, 1)

    return form("ssm_scan", case, arrays, build)


def ssm_scan_per_channel(case, x):
    """Mamba-1: every channel is a head of size 1 with a row of `a`; the step before its softplus."""
    channels, N = x["a"].shape
    state = x.get("initial_state", np.zeros(laws.state_shape(case), np.float32))
    arrays = {
        "s": state.reshape(-1, channels, 1, N),
        "x": x["x"][..., None],
        "dt": np.log(np.expm1(x["step"].astype(np.float64))).astype(np.float32),
        "A": x["a"],
        "B": x["b"][:, :, None],
        "C": x["c"][:, :, None],
        "ids": np.arange(case["B"], dtype=np.int32),
    }

    def build(graph, s, x, dt, A, B, C, ids):
        return api().ssm_scan(graph.context, s, x, dt, A, B, C, ids, 1)

    return form("ssm_scan", case, arrays, build)


def rows(*arrays):
    """[B, T, H, D] as the operations want it that let the sequences of a batch follow each other."""
    return [np.ascontiguousarray(array).reshape(-1, *array.shape[2:]) for array in arrays]


def state_of(case, x, transposed=False):
    state = x.get("initial_state", np.zeros(laws.state_shape(case), np.float32))
    return np.ascontiguousarray(np.swapaxes(state, 2, 3) if transposed else state).reshape(case["B"], -1)


def gated_linear_attention(case, x):
    """Its gate is a factor per key channel; a scalar decay repeats it."""
    decay = x["log_decay"] if case["subject"] == "channel_decay" else laws.log_decay(x)[..., None]
    gate = np.exp(np.broadcast_to(decay, x["k"].shape))
    arrays = dict(zip(("k", "v", "q", "g"), rows(x["k"], x["v"], x["q"], gate))) | {"state": state_of(case, x)}

    def build(graph, k, v, q, g, state):
        return api().gated_linear_attn(graph.context, k, v, q, g, state, case["K"] ** -0.5)

    return form("gated_linear_attn", case, arrays, build)


def rwkv_wkv6(case, x):
    scaled = x["q"] * np.float32(case["K"] ** -0.5)
    names, values = ("k", "v", "r", "td"), (x["k"], x["v"], scaled, np.exp(x["log_decay"]))
    arrays = dict(zip(names, rows(*values))) | {"tf": x["bonus"], "state": state_of(case, x)}

    def build(graph, k, v, r, td, tf, state):
        return api().rwkv_wkv6(graph.context, k, v, r, tf, td, state)

    return form("rwkv_wkv6", case, arrays, build)


def rwkv_wkv7(case, x):
    scaled = x["q"] * np.float32(case["K"] ** -0.5)
    names, values = ("r", "w", "k", "v", "a", "b"), (scaled, np.exp(x["log_decay"]), x["k"], x["v"], x["a"], x["b"])
    arrays = dict(zip(names, rows(*values))) | {"state": state_of(case, x, transposed=True)}

    def build(graph, r, w, k, v, a, b, state):
        return api().rwkv_wkv7(graph.context, r, w, k, v, a, b, state)

    return form("rwkv_wkv7", case, arrays, build)


def gated_delta_net(case, x):
    """The gate is a logarithm per head or per key channel, chosen by its shape; q is scaled inside by V^-1/2."""
    B, T, H, V = (case[n] for n in "BTHV")
    gate = x["log_decay"] if case["variant"] == "kda" else laws.log_decay(x)[..., None]
    state = state_of(case, x, transposed=True).reshape(B, H, V, V)
    arrays = {"q": x["q"], "k": x["k"], "v": x["v"], "g": gate, "beta": x["beta"][..., None], "state": state}

    def build(graph, q, k, v, g, beta, state):
        return api().gated_delta_net(graph.context, q, k, v, g, beta, state, 1)

    return form("gated_delta_net", case, arrays, build)


if __name__ == "__main__":
    main("ggml", prepare, version)
