"""Models that come as files of torch.save."""
import re

from model_formats.arrays import Refused
from model_formats.torch_file import arrays_of, read_torch

from .folder import expect_shapes, write_model


def tabpfn(data, folder):
    """TabPFN, names as its authors have them: rows of a table are tokens, and all attend to the rows with labels."""
    saved = read_torch(data)
    if not isinstance(saved, tuple) or len(saved) != 3 or not isinstance(saved[2], dict):
        raise Refused("expected weights, optimiser and settings in the file")
    tensors, settings = arrays_of(saved[0], "module."), saved[2]
    tensors.pop("criterion.weight", None)  # of the loss
    width, layers, mlp = settings["emsize"], settings["nlayers"], settings["emsize"] * settings["nhid_factor"]
    features, classes = settings["num_features"], settings["max_num_classes"]
    layer = {"self_attn.in_proj_weight": (3 * width, width), "self_attn.in_proj_bias": (3 * width,), "self_attn.out_proj.weight": (width, width),
             "self_attn.out_proj.bias": (width,), "linear1.weight": (mlp, width), "linear1.bias": (mlp,), "linear2.weight": (width, mlp),
             "linear2.bias": (width,)} | {f"norm{n}.{part}": (width,) for n in (1, 2) for part in ("weight", "bias")}
    wanted = {f"transformer_encoder.layers.{n}.{name}": shape for n in range(layers) for name, shape in layer.items()}
    wanted |= {"encoder.weight": (width, features), "encoder.bias": (width,), "y_encoder.weight": (width, 1), "y_encoder.bias": (width,),
               "decoder.0.weight": (mlp, width), "decoder.0.bias": (mlp,), "decoder.2.weight": (classes, mlp), "decoder.2.bias": (classes,)}
    expect_shapes(tensors, wanted)
    write_model(folder, {"architectures": ["TabPFN"], "model_type": "tabpfn", "hidden_size": width, "num_hidden_layers": layers,
                         "num_attention_heads": settings["nhead"], "intermediate_size": mlp, "num_features": features, "num_labels": classes,
                         "hidden_act": "gelu", "layer_norm_eps": 1e-5, "norm_first": False, "torch_dtype": "float32"}, tensors)


OF_CODE = ("instance.", "inv_freq", "calls_since_last_redraw", "layer_pos_emb.emb")


def transcripts(data, folder):
    """TIS Transformer, names as its authors have them: a Performer that labels each nucleotide. What its code makes again, or keeps twice, is left out."""
    saved = read_torch(data)
    if not isinstance(saved, dict) or not isinstance(saved.get("hyper_parameters"), dict):
        raise Refused("expected state_dict and hyper_parameters in the file")
    sizes = {name: saved["hyper_parameters"][name] for name in ("num_tokens", "max_seq_len", "dim", "depth", "heads", "dim_head", "nb_features", "local_attn_heads",
                                                                "local_window_size", "causal", "generalized_attention", "use_scalenorm", "use_rezero", "ff_glu")}
    tensors = {name: a for name, a in arrays_of(saved.get("state_dict")).items() if not any(part in name for part in OF_CODE)}
    width, inner, labels = sizes["dim"], sizes["heads"] * sizes["dim_head"], 2
    layer = {f"0.fn.to_{part}.{kind}": (inner, width)[:2 - (kind == "bias")] for part in "qkv" for kind in ("weight", "bias")}
    layer |= {"0.fn.to_out.weight": (width, inner), "0.fn.to_out.bias": (width,), "1.fn.fn.w1.weight": (4 * width, width), "1.fn.fn.w1.bias": (4 * width,),
              "1.fn.fn.w2.weight": (width, 4 * width), "1.fn.fn.w2.bias": (width,), "0.fn.fast_attention.projection_matrix": (sizes["nb_features"], sizes["dim_head"])}
    layer |= {f"{n}.norm.{kind}": (width,) for n in (0, 1) for kind in ("weight", "bias")}
    wanted = {f"transformer.net.layers.{n}.{name}": shape for n in range(sizes["depth"]) for name, shape in layer.items()}
    wanted |= {"nuc_emb.weight": (sizes["num_tokens"], width), "pos_emb.emb": (sizes["max_seq_len"] + 2, width), "ff_1.weight": (2 * width, width),
               "ff_1.bias": (2 * width,), "ff_2.weight": (labels, 2 * width), "ff_2.bias": (labels,)}
    expect_shapes(tensors, wanted)
    write_model(folder, {"architectures": ["TranscriptTransformer"], "model_type": "performer", "num_labels": labels, "torch_dtype": "float32"} | sizes, tensors)


WHISPER = [(r"\.blocks\.", ".layers."), (r"\.cross_attn_ln\.", ".encoder_attn_layer_norm."), (r"\.cross_attn\.", ".encoder_attn."),
           (r"\.attn_ln\.", ".self_attn_layer_norm."), (r"\.attn\.", ".self_attn."), (r"\.query\.", ".q_proj."), (r"\.key\.", ".k_proj."),
           (r"\.value\.", ".v_proj."), (r"attn\.out\.", "attn.out_proj."), (r"\.mlp\.0\.", ".fc1."), (r"\.mlp\.2\.", ".fc2."),
           (r"\.mlp_ln\.", ".final_layer_norm."), (r"\.ln_post\.|decoder\.ln\.", lambda m: m.group().replace("ln_post", "layer_norm").replace("ln.", "layer_norm.")),
           (r"\.token_embedding\.", ".embed_tokens."), (r"\.positional_embedding$", ".embed_positions.weight")]


def whisper(data, folder):
    """Whisper, of OpenAI's names. The file has no tokenizer."""
    saved = read_torch(data)
    if not isinstance(saved, dict) or not isinstance(saved.get("dims"), dict):
        raise Refused("expected dims and model_state_dict in the file")
    dims, tensors = saved["dims"], {}
    for name, a in arrays_of(saved.get("model_state_dict")).items():
        for pattern, ours in WHISPER:
            name = re.sub(pattern, ours, name)
        tensors["model." + name] = a
    width = dims["n_text_state"]
    write_model(folder, {"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "d_model": width, "vocab_size": dims["n_vocab"],
                         "num_mel_bins": dims["n_mels"], "encoder_layers": dims["n_audio_layer"], "decoder_layers": dims["n_text_layer"],
                         "encoder_attention_heads": dims["n_audio_head"], "decoder_attention_heads": dims["n_text_head"],
                         "encoder_ffn_dim": 4 * width, "decoder_ffn_dim": 4 * width, "max_source_positions": dims["n_audio_ctx"],
                         "max_target_positions": dims["n_text_ctx"], "activation_function": "gelu", "scale_embedding": False,
                         "tie_word_embeddings": True, "torch_dtype": "float16"}, tensors)
