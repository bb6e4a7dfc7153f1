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
    if case["subject"] == "attention":
        return [flash_attention(case, x)]
    if case["variant"] == "mlstm":
        raise Skip("no operation with an input gate and a normaliser")
    forms = [ssm_scan(case, x)]
    if case["K"] == case["V"]:
        forms.append(gated_linear_attention(case, x))
    return forms


def form(name, case, arrays, build):
    shape = tuple(case[n] for n in "BTHV")
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


def gated_linear_attention(case, x):
    """Its gate is a factor per key channel; a scalar decay repeats it. Sequences of a batch follow each other."""
    B, T, H, K = (case[n] for n in "BTHK")
    arrays = {name: x[name].reshape(B * T, H, K) for name in "kvq"}
    arrays["g"] = np.ascontiguousarray(np.broadcast_to(np.exp(laws.log_decay(x))[..., None], (B, T, H, K))).reshape(B * T, H, K)
    arrays["state"] = x.get("initial_state", np.zeros((B, H, K, K), np.float32)).reshape(B, H * K * K)

    def build(graph, k, v, q, g, state):
        return api().gated_linear_attn(graph.context, k, v, q, g, state, K**-0.5)

    return form("gated_linear_attn", case, arrays, build)


if __name__ == "__main__":
    main("ggml", prepare, version)
