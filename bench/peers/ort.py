"""ONNX Runtime on the CPU: its fused operators, one node per model, inputs and outputs bound once."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from peers import laws
from peers.worker import Form, Skip, main

TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int32): TensorProto.INT32}


# The update rule of LinearAttention. Its decay is per head or per key channel, whichever the input's shape says.
RULES = {
    ("scalar_decay", "linear"): "linear",
    ("scalar_decay", "fixed"): "gated",
    ("scalar_decay", "gated"): "gated",
    ("channel_decay", "gla"): "gated",
    ("delta", "plain"): "delta",
    ("delta", "gated"): "gated_delta",
    ("delta", "kda"): "gated_delta",
}
REASONS = {
    "mlstm": "LinearAttention has no input gate and no normaliser",
    "rwkv6": "LinearAttention reads after the update",
    "rwkv7": "LinearAttention has no rule of two vectors",
}


def prepare(case, x):
    if case["direction"] == "forward+backward":
        raise Skip("the CPU package has no gradient")
    if case["subject"] == "attention":
        return attention(case, x)
    rule = RULES.get((case["subject"], case["variant"]))
    if rule is None:
        raise Skip(REASONS.get(case["variant"], "no fused operator for a scan"))
    return [linear_attention(case, x, rule)]


def attention(case, x):
    """Every fused operator that can express the case; the worker keeps the fastest."""
    B, T, H, K = (case[n] for n in "BTHK")
    heads = {"num_heads": H}
    packed = {name: pack(x[name]) for name in "qkv"}
    if case["direction"] == "step":
        # One query sees every key. Keys and values are in the layout of its cache, [B, H, S, D], which saves a transpose.
        cache = {name: np.ascontiguousarray(x[name].swapaxes(1, 2)) for name in "kv"}
        return [node("MultiHeadAttention", case, {"q": packed["q"]} | cache, heads)]
    empty = np.zeros((B, H, 0, K), np.float32)
    tokens = packed | {"past_key": empty, "past_value": empty, "last": np.full(B, T - 1, np.int32), "total": np.full(1, T, np.int32)}
    window = {"local_window_size": case["window"]} if case["variant"] == "window" else {}
    forms = [node("GroupQueryAttention", case, tokens, heads | {"kv_num_heads": H} | window, [(B, H, T, K)] * 2)]
    if case["variant"] == "causal":
        forms.append(node("MultiHeadAttention", case, packed, heads | {"unidirectional": 1}))
    return forms


def linear_attention(case, x, rule):
    B, H, K, V = (case[n] for n in "BHKV")
    tensors = {name: pack(x[name]) for name in "qkv"}
    tensors["past"] = x.get("initial_state")
    if "gated" in rule:
        tensors["decay"] = pack(x["log_decay"]) if x["log_decay"].ndim == 4 else laws.log_decay(x)
    if "delta" in rule:
        tensors.setdefault("decay", None)
        tensors["beta"] = x["beta"]
    attributes = {"q_num_heads": H, "kv_num_heads": H, "update_rule": rule}
    return node("LinearAttention", case, tensors, attributes, [(B, H, K, V)])


def node(op, case, tensors, attributes, more_outputs=()):
    """A session of one `com.microsoft` node as a form. A tensor that is None is an input left out."""
    B, T, H, V = (case[n] for n in "BTHV")
    outputs = {"o": (B, T, H * V)} | {f"more{i}": shape for i, shape in enumerate(more_outputs)}
    present = {name: array for name, array in tensors.items() if array is not None}
    names = [name if name in present else "" for name in tensors]
    graph = helper.make_graph(
        [helper.make_node(op, names, list(outputs), domain="com.microsoft", **attributes)],
        op,
        [helper.make_tensor_value_info(name, TYPES[array.dtype], array.shape) for name, array in present.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    session = open_session(helper.make_model(graph, opset_imports=opsets, ir_version=10), case["threads"])
    binding = session.io_binding()
    for name, array in present.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    for name, shape in outputs.items():
        binding.bind_ortvalue_output(name, onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, np.float32))
    return Form(
        op,
        lambda: session.run_with_iobinding(binding),
        lambda: {"o": binding.get_outputs()[0].numpy().reshape(B, T, H, V)},
    )


def open_session(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Its threads spin while it works, as they do by default, but not while another worker is being timed.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def pack(array):
    """[B, T, H, D] as [B, T, H*D]."""
    return np.ascontiguousarray(array.reshape(*array.shape[:2], -1))


if __name__ == "__main__":
    main("ort", prepare, lambda: f"onnxruntime {onnxruntime.__version__}")
