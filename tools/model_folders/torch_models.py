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
