"""What all folders have in common."""
import json

from model_formats.arrays import Refused, write_safetensors


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_model(folder, config, tensors):
    write_json(folder / "config.json", config)
    write_safetensors(folder / "model.safetensors", tensors)


def expect_shapes(tensors, shapes):
    """Exactly these tensors, with these shapes: what is missing or unknown is named, not guessed."""
    missing, unknown = sorted(shapes.keys() - tensors.keys()), sorted(tensors.keys() - shapes.keys())
    if missing or unknown:
        raise Refused(f"expected other tensors: missing {', '.join(missing[:5]) or 'none'}; unknown {', '.join(unknown[:5]) or 'none'}")
    for name, shape in shapes.items():
        if tensors[name].shape != tuple(shape):
            raise Refused(f"expected {name} of {list(shape)}, got {list(tensors[name].shape)}")
