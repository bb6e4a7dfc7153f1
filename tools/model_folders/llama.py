"""Models of Llama's layout: a file of llama2.c, a GGUF file."""
from model_formats import gguf, llama2c, tokenizer_json
from model_formats.arrays import Refused, bf16, unrotated

from .folder import expect_shapes, write_json, write_model


def shapes(config):
    width, mlp = config["hidden_size"], config["intermediate_size"]
    keys = config["num_key_value_heads"] * (width // config["num_attention_heads"])
    all_shapes = {"model.embed_tokens.weight": (config["vocab_size"], width), "model.norm.weight": (width,)}
    if not config["tie_word_embeddings"]:
        all_shapes["lm_head.weight"] = (config["vocab_size"], width)
    layer = {"self_attn.q_proj": (width, width), "self_attn.k_proj": (keys, width), "self_attn.v_proj": (keys, width), "self_attn.o_proj": (width, width),
             "mlp.gate_proj": (mlp, width), "mlp.up_proj": (mlp, width), "mlp.down_proj": (width, mlp), "input_layernorm": (width,),
             "post_attention_layernorm": (width,)}
    for n in range(config["num_hidden_layers"]):
        all_shapes |= {f"model.layers.{n}.{name}.weight": shape for name, shape in layer.items()}
    return all_shapes


def llama_config(width, mlp, layers, heads, kv_heads, vocabulary, positions, theta, eps, tied, bos, eos, dtype):
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": width, "intermediate_size": mlp, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": kv_heads, "vocab_size": vocabulary, "max_position_embeddings": positions,
            "rope_theta": theta, "rms_norm_eps": eps, "tie_word_embeddings": tied, "hidden_act": "silu", "attention_bias": False, "mlp_bias": False,
            "bos_token_id": bos, "eos_token_id": eos, "torch_dtype": dtype}


LLAMA2C = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj", "w1": "mlp.gate_proj", "w2": "mlp.down_proj",
           "w3": "mlp.up_proj", "attention_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm"}


def original_pieces(pieces):
    """tokenizer.bin has spaces as such, line breaks around the tokens that begin and end a text, and, where it is old, bytes as the
    characters of that number."""
    texts = [piece.decode() for piece in pieces]
    texts[1:3] = [text.strip() for text in texts[1:3]]
    if texts[3:259] == [chr(byte) for byte in range(256)]:
        texts[3:259] = [f"<0x{byte:02X}>" for byte in range(256)]
    return [text.replace(" ", "▁") for text in texts]


def from_llama2c(data, folder):
    """The bytes of a checkpoint with its tokenizer.bin behind it, as a page in a browser loads them."""
    header, arrays, end = llama2c.read_checkpoint(data)
    tensors = {"model.embed_tokens.weight": arrays["embedding"], "model.norm.weight": arrays["norm"]}
    if not header["tied"]:
        tensors["lm_head.weight"] = arrays["head"]
    heads = {"q": header["heads"], "k": header["kv_heads"]}
    for name, ours in LLAMA2C.items():
        for layer, matrix in enumerate(arrays[name].slabs()):
            tensors[f"model.layers.{layer}.{ours}.weight"] = unrotated(matrix, heads[name]) if name in heads else matrix
    config = llama_config(header["dim"], header["hidden"], header["layers"], header["heads"], header["kv_heads"], header["vocabulary"],
                          header["positions"], 10000.0, 1e-5, header["tied"], 1, 2, "float32")
    expect_shapes(tensors, shapes(config))
    pieces, scores, used = llama2c.read_tokenizer(data[end:], header["vocabulary"])
    if end + used != len(data):
        raise Refused(f"expected a checkpoint and its tokenizer, got {len(data) - end - used} bytes behind them")
    write_model(folder, config, tensors)
    (folder / "tokenizer.json").write_text(tokenizer_json.sentence_pieces(original_pieces(pieces), scores))
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "LlamaTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
                                                  "add_bos_token": True, "add_eos_token": False, "clean_up_tokenization_spaces": False,
                                                  "model_max_length": header["positions"]})


GGUF = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
        "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm"}
OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def gguf_name(name):
    """blk.0.attn_q.weight -> model.layers.0.self_attn.q_proj.weight"""
    parts = name.removesuffix(".weight").split(".")
    if len(parts) == 3 and parts[0] == "blk" and parts[2] in GGUF:
        return f"model.layers.{parts[1]}.{GGUF[parts[2]]}.weight"
    return f"{OUTER.get(name.removesuffix('.weight'), name)}.weight"


def from_gguf(data, dtype, folder):
    """The bytes of a GGUF file of a Llama with a tokenizer of GPT-2's kind; `dtype` is BF16 or F32."""
    about, tensors = gguf.read_gguf(data)
    if (about.get("general.architecture"), about.get("tokenizer.ggml.model")) != ("llama", "gpt2"):
        raise Refused("expected a GGUF file of a llama with a tokenizer gpt2")

    def of(key):
        return about[f"llama.{key}"]

    tokens, eps = about["tokenizer.ggml.tokens"], float(f"{of('attention.layer_norm_rms_epsilon'):.6g}")
    config = llama_config(of("embedding_length"), of("feed_forward_length"), of("block_count"), of("attention.head_count"),
                          of("attention.head_count_kv"), len(tokens), of("context_length"), of("rope.freq_base"), eps,
                          "output.weight" not in tensors, about["tokenizer.ggml.bos_token_id"], about["tokenizer.ggml.eos_token_id"],
                          {"BF16": "bfloat16", "F32": "float32"}[dtype])
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    out = {}
    for name, tensor in tensors.items():
        a = gguf.dequantised(tensor, dtype)
        a = bf16(a) if (a.dtype, dtype) == ("F32", "BF16") else a
        part = name.split(".")[-2]
        # Files of this architecture have queries and keys in the order that turns neighbours.
        out[gguf_name(name)] = unrotated(a, heads[part]) if part in heads else a
    expect_shapes(out, shapes(config))
    write_model(folder, config, out)
    special = [token for token, kind in enumerate(about["tokenizer.ggml.token_type"]) if kind == 3]
    digits = about.get("tokenizer.ggml.pre") == "smollm"
    (folder / "tokenizer.json").write_text(tokenizer_json.byte_pairs(tokens, about["tokenizer.ggml.merges"], special, digits))
    names = {f"{name}_token": tokens[about[f"tokenizer.ggml.{key}_token_id"]] for name, key in
             (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")) if f"tokenizer.ggml.{key}_token_id" in about}
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False, "add_bos_token": False,
                                                  "clean_up_tokenization_spaces": False, "model_max_length": of("context_length"),
                                                  "chat_template": about.get("tokenizer.chat_template"), **names})
