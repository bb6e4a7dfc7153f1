"""Encoders of BERT's layout: TensorFlow's bundle of the original, ONNX files of sentence encoders."""
import io
import json
import zipfile

from model_formats import onnx, tokenizer_json
from model_formats.arrays import Refused
from model_formats.tensor_bundle import read_bundle

from .folder import expect_shapes, write_json, write_model


def shapes(config, prefix="", pooler=True):
    width, mlp = config["hidden_size"], config["intermediate_size"]

    def linear(name, out, into):
        return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}

    def norm(name):
        return {f"{name}.LayerNorm.weight": (width,), f"{name}.LayerNorm.bias": (width,)}

    of = {"embeddings.word_embeddings.weight": (config["vocab_size"], width), "embeddings.position_embeddings.weight": (config["max_position_embeddings"], width),
          "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], width)} | norm("embeddings")
    for n in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{n}"
        for name in ("query", "key", "value"):
            of |= linear(f"{layer}.attention.self.{name}", width, width)
        of |= linear(f"{layer}.attention.output.dense", width, width) | norm(f"{layer}.attention.output")
        of |= linear(f"{layer}.intermediate.dense", mlp, width) | linear(f"{layer}.output.dense", width, mlp) | norm(f"{layer}.output")
    if pooler:
        of |= linear("pooler.dense", width, width)
    return {prefix + name: shape for name, shape in of.items()}


def bert_config(architecture, width, layers, heads, mlp, vocabulary):
    return {"architectures": [architecture], "model_type": "bert", "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads,
            "intermediate_size": mlp, "vocab_size": vocabulary, "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu",
            "layer_norm_eps": 1e-12, "position_embedding_type": "absolute", "pad_token_id": 0, "hidden_dropout_prob": 0.1,
            "attention_probs_dropout_prob": 0.1, "initializer_range": 0.02, "torch_dtype": "float32"}


def write_tokenizer(folder, vocabulary, text=None):
    (folder / "vocab.txt").write_text("".join(word + "\n" for word in vocabulary))
    (folder / "tokenizer.json").write_text(text or tokenizer_json.word_pieces(vocabulary))
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 512, **names})


def renamed(name):
    """bert/encoder/layer_0/attention/self/query/kernel -> bert.encoder.layer.0.attention.self.query.weight"""
    name = name.removeprefix("module/").replace("/", ".").replace(".layer_", ".layer.").replace(".output_bias", ".bias")
    for end, ours in ((".kernel", ".weight"), (".gamma", ".weight"), (".beta", ".bias"), ("_embeddings", "_embeddings.weight")):
        name = name.removesuffix(end) + ours if name.endswith(end) else name
    return name


def from_saved_model(saved, folder):
    """The bytes of a zip with a SavedModel of BERT with its head for masked words, and assets/vocab.txt."""
    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        def member(end):
            found = [name for name in archive.namelist() if name.endswith(end)]
            if len(found) != 1:
                raise Refused(f"expected one {end} in the SavedModel, found {len(found)}")
            return archive.read(found[0])

        vocabulary = member("vocab.txt").decode().splitlines()
        arrays = read_bundle(member("variables.index"), member("variables.data-00000-of-00001"))
    tensors = {renamed(name): a.transposed() if name.endswith("/kernel") else a for name, a in arrays.items()}
    config = bert_config("BertForMaskedLM", 768, 12, 12, 3072, len(vocabulary))
    head = {"cls.predictions.bias": (len(vocabulary),), "cls.predictions.transform.dense.weight": (768, 768), "cls.predictions.transform.dense.bias": (768,),
            "cls.predictions.transform.LayerNorm.weight": (768,), "cls.predictions.transform.LayerNorm.bias": (768,)}
    expect_shapes(tensors, shapes(config, "bert.") | head)
    write_model(folder, config, tensors)
    write_tokenizer(folder, vocabulary)


def from_onnx(data, tokenizer, pooling, folder):
    """A small sentence encoder (12 layers of 384); `pooling` is cls or mean."""
    arrays, nodes = onnx.read_onnx(data)
    every = onnx.named_matrices(arrays, nodes)
    config = bert_config("BertModel", 384, 12, 12, 1536, every["embeddings.word_embeddings.weight"].shape[0])
    wanted = shapes(config, pooler=any(name.startswith("pooler.") for name in every))
    # What is left are numbers of the graph itself: shapes, scales, ranges.
    expect_shapes({name: a for name, a in every.items() if name in wanted}, wanted)
    write_model(folder, config, {name: every[name] for name in wanted})
    write_sentence_encoder(folder, pooling)
    write_word_pieces(folder, tokenizer)


def write_word_pieces(folder, tokenizer):
    """A tokenizer.json as it is, and its vocabulary as vocab.txt."""
    words = json.loads(tokenizer)["model"]["vocab"]
    if sorted(words.values()) != list(range(len(words))):
        raise Refused("tokenizer.json: expected tokens without gaps")
    write_tokenizer(folder, sorted(words, key=words.get), tokenizer.decode())


def write_sentence_encoder(folder, pooling):
    """What the package sentence-transformers reads: how the vectors of tokens become one, of length 1."""
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    write_json(folder / "modules.json", [{"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"} for n, (path, kind) in enumerate(kinds)])
    (folder / "1_Pooling").mkdir()
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 384, "pooling_mode_cls_token": pooling == "cls", "pooling_mode_mean_tokens": pooling == "mean",
                                                      "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False})
