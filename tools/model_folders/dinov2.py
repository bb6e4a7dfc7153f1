"""A vision transformer of DINOv2's layout in an ONNX file, without the head that stands on it there."""
from model_formats import onnx
from model_formats.arrays import Refused

from .folder import expect_shapes, write_json, write_model

WIDTH, LAYERS, HEADS, PATCH, PLACES = 384, 12, 6, 14, 37


def shapes():
    of = {"embeddings.cls_token": (1, 1, WIDTH), "embeddings.position_embeddings": (1, PLACES * PLACES + 1, WIDTH),
          "embeddings.patch_embeddings.projection.weight": (WIDTH, 3, PATCH, PATCH), "embeddings.patch_embeddings.projection.bias": (WIDTH,),
          "layernorm.weight": (WIDTH,), "layernorm.bias": (WIDTH,)}
    linear = {"attention.attention.query": (WIDTH, WIDTH), "attention.attention.key": (WIDTH, WIDTH), "attention.attention.value": (WIDTH, WIDTH),
              "attention.output.dense": (WIDTH, WIDTH), "mlp.fc1": (4 * WIDTH, WIDTH), "mlp.fc2": (WIDTH, 4 * WIDTH)}
    for n in range(LAYERS):
        layer = f"encoder.layer.{n}"
        for name, shape in linear.items():
            of |= {f"{layer}.{name}.weight": shape, f"{layer}.{name}.bias": shape[:1]}
        for name in ("norm1", "norm2"):
            of |= {f"{layer}.{name}.weight": (WIDTH,), f"{layer}.{name}.bias": (WIDTH,)}
        of |= {f"{layer}.layer_scale1.lambda1": (WIDTH,), f"{layer}.layer_scale2.lambda1": (WIDTH,)}
    return of


def one_of(arrays, shape):
    """The only unnamed array of a shape."""
    found = [a for name, a in arrays.items() if name.startswith("onnx::") and a.shape == shape]
    if len(found) != 1:
        raise Refused(f"onnx: expected one unnamed array of {list(shape)}, found {len(found)}")
    return found[0]


def from_onnx(data, folder):
    arrays, nodes = onnx.read_onnx(data)
    every = {name.removeprefix("backbone."): a for name, a in onnx.named_matrices(arrays, nodes).items()}
    # The exporter cut the table of positions in two: the class token's, and those of the patches.
    parts = [one_of(arrays, (1, n, WIDTH)) for n in (1, PLACES * PLACES)]
    every["embeddings.position_embeddings"] = type(parts[0])("F32", (1, PLACES * PLACES + 1, WIDTH), b"".join(bytes(part.data) for part in parts))
    wanted = shapes()
    expect_shapes({name: a for name, a in every.items() if name in wanted}, wanted)
    write_model(folder, {"architectures": ["Dinov2Model"], "model_type": "dinov2", "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
                         "num_attention_heads": HEADS, "mlp_ratio": 4, "hidden_act": "gelu", "layer_norm_eps": 1e-6, "image_size": PLACES * PATCH,
                         "patch_size": PATCH, "num_channels": 3, "qkv_bias": True, "layerscale_value": 1.0, "use_swiglu_ffn": False,
                         "torch_dtype": "float32"}, {name: every[name] for name in wanted})
    write_json(folder / "preprocessor_config.json", {"image_processor_type": "BitImageProcessor", "size": {"height": 224, "width": 224}, "do_resize": True,
                                                     "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
                                                     "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})
