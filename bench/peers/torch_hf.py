"""PyTorch: the models of transformers, eager, with SDPA."""

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from peers.models import Server
from peers.worker import serve

TYPES = {"float32": torch.float32, "bf16": torch.bfloat16}


class Model:
    def __init__(self, case, kind, **options):
        torch.set_num_threads(case["threads"])
        self.options = options
        self.model = kind.from_pretrained(case["model"], dtype=TYPES[case["weights"]], attn_implementation="sdpa",
                                          local_files_only=True).eval()

    @torch.inference_mode()
    def read(self, tokens):
        out = self.model(input_ids=torch.tensor([tokens]), **self.options)
        self.past = out.get("past_key_values")
        return out.logits[0, -1].float()


class Language(Model):
    """Prompts need the logits of their last token only."""

    def __init__(self, case):
        super().__init__(case, AutoModelForCausalLM, use_cache=True, logits_to_keep=1)

    @torch.inference_mode()
    def say(self, token):
        out = self.model(input_ids=torch.tensor([[token]]), past_key_values=self.past, **self.options)
        return out.logits[0, -1].float()


def make(case):
    return Language(case) if case["kind"] == "language" else Model(case, AutoModelForMaskedLM)


def version():
    return f"PyTorch {torch.__version__}, transformers {transformers.__version__}"


if __name__ == "__main__":
    serve(Server(make, version).answer)
