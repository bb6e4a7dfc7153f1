"""The pre-trained models that bench/models times, and what is to be reached: data."""

MODELS = {
    "smollm2-135m": {"kind": "language", "prompts": (128, 512, 2048), "vocabulary": 49152},
    "bert-base": {"kind": "masked", "prompts": (128, 512), "vocabulary": 30522},
}
WEIGHTS = ("float32", "bf16")
TOKENS = 32  # said after a prompt

PREFILL_RATIO = {("torch_hf", "float32"): 1.3, ("torch_hf", "bf16"): 1.3, ("llama_cpp", "float32"): 1.2, ("llama_cpp", "bf16"): 1.2}
READ_SHARE = 0.9  # of the speed at which as many bytes are read
FIRST_SECONDS = {("smollm2-135m", "bf16"): 1.0}  # from the start of loading to the first token after the shortest prompt


def case(model, weights, prompt, threads):
    return {"name": model, "kind": MODELS[model]["kind"], "weights": weights, "prompt": prompt, "threads": threads,
            "room": prompt + TOKENS}


def suite(models, weights, prompts, threads):
    return [case(model, kind, prompt, count) for model in models for count in threads for kind in weights
            for prompt in MODELS[model]["prompts"] if not prompts or prompt in prompts]


def prompt(one):
    """Tokens that nobody would say: the same on every side, and no two places alike."""
    vocabulary = MODELS[one["name"]]["vocabulary"]
    return [(7919 * i + 1009) % (vocabulary - 1000) + 500 for i in range(one["prompt"])]


def name(one):
    return f"{one['name']} {one['weights']} {one['prompt']}"
