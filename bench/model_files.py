"""The same weights in the forms that the sides of bench/models read: a folder of Hugging Face in float32 or bf16, a GGUF file.

Made once, below build/bench-models, from what tools/models fetches.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
TYPES = {"F32": np.float32, "BF16": np.uint16, "F16": np.float16}  # bf16 as its bits
NAMES = {"float32": "F32", "bf16": "BF16"}


def widened(array):
    """float32 of a tensor of any of TYPES."""
    if array.dtype != np.uint16:
        return array.astype(np.float32)
    return (array.astype(np.uint32) << 16).view(np.float32)


def rounded(array):
    """The bits of bf16, to nearest, ties to even; of finite numbers."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def in_type(array, weights):
    if weights == "float32":
        return widened(array)
    return array if array.dtype == np.uint16 else rounded(widened(array))


def read(folder):
    """{name: array}, mapped."""
    path = pathlib.Path(folder) / "model.safetensors"
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    data = np.memmap(path, np.uint8, "r", 8 + size)
    return {name: data[slice(*entry["data_offsets"])].view(TYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()}


def write(path, tensors):
    """In the order of their names, as transformers writes them, each aligned as vectors are."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    names = {np.dtype(kind): name for name, kind in TYPES.items()}
    for name, array in sorted(tensors.items()):
        header[name] = {"dtype": names[array.dtype], "shape": array.shape, "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, array in sorted(tensors.items()):
            file.write(np.ascontiguousarray(array).tobytes())


def made(path, make):
    """The path, which make(beside) makes beside it first: it is whole or not there."""
    path = pathlib.Path(path)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as beside:
            made_there = pathlib.Path(beside) / path.name
            make(made_there)
            os.rename(made_there, path)
    return path


def folder(name, weights, into):
    """The folder of Hugging Face of a model of tools/models, with its weights in that type."""

    def make(path):
        options = ["--dequantise"] if name == "smollm2-135m" else []
        subprocess.run([ROOT / "tools" / "models", name, *options], check=True, stdout=subprocess.DEVNULL)
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
        source = cache / "isomer" / "models" / name / ("hf" if options else "")
        path.mkdir()
        for file in source.glob("*.json"):
            shutil.copy(file, path)
        config = json.loads((source / "config.json").read_text())
        config["torch_dtype"] = {"float32": "float32", "bf16": "bfloat16"}[weights]
        (path / "config.json").write_text(json.dumps(config, indent=1))
        write(path / "model.safetensors", {key: in_type(array, weights) for key, array in read(source).items()})

    return made(into / f"{name}-{weights}", make)


OUTER = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}
INNER = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down"}


def gguf_name(name):
    if name in OUTER:
        return OUTER[name]
    layer, part = name.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{INNER[part.removesuffix('.weight')]}.weight"


def with_pairs(array, heads):
    """Rows in llama.cpp's order: the two channels of a rotated pair beside each other."""
    rows, columns = array.shape
    return array.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def gguf(source):
    """A GGUF file of a folder of Llama, without a tokenizer: matrices in the folder's type, norms in float32."""
    import gguf as package

    config = json.loads((source / "config.json").read_text())
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]

    def make(path):
        writer = package.GGUFWriter(str(path), "llama")
        for key, value in (("context_length", config["max_position_embeddings"]), ("embedding_length", config["hidden_size"]),
                           ("block_count", config["num_hidden_layers"]), ("feed_forward_length", config["intermediate_size"]),
                           ("attention.head_count", heads), ("attention.head_count_kv", groups),
                           ("rope.dimension_count", config["hidden_size"] // heads), ("vocab_size", config["vocab_size"])):
            writer.add_uint32(f"llama.{key}", value)
        writer.add_float32("llama.rope.freq_base", config.get("rope_theta", 10000.0))
        writer.add_float32("llama.attention.layer_norm_rms_epsilon", config["rms_norm_eps"])
        writer.add_string("tokenizer.ggml.model", "no_vocab")
        for name, array in read(source).items():
            if ".q_proj" in name or ".k_proj" in name:
                array = with_pairs(array, heads if ".q_proj" in name else groups)
            if array.ndim == 1 or array.dtype != np.uint16:
                writer.add_tensor(gguf_name(name), widened(array))
            else:
                writer.add_tensor(gguf_name(name), np.ascontiguousarray(array).view(np.uint8), raw_dtype=package.GGMLQuantizationType.BF16)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    return made(source.with_name(source.name + ".gguf"), make)
