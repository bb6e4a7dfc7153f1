"""A model of Hugging Face transformers on Isomer's laws: one line.   usage: python accelerate_model.py [MODEL]
MODEL: a name or a folder for from_pretrained(); without one a small random Mamba is made."""
import sys
import time

import torch
import transformers

import isomer.torch

if len(sys.argv) > 1:
    model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
else:
    torch.manual_seed(1)
    model = transformers.MambaForCausalLM(transformers.MambaConfig(vocab_size=256, hidden_size=64, num_hidden_layers=2)).eval()
tokens = torch.randint(256, (1, 128))


@torch.no_grad()
def measure():
    model(tokens)
    start = time.perf_counter()
    logits = model(tokens).logits
    return logits, tokens.numel() / (time.perf_counter() - start)


before, slow = measure()
print(isomer.torch.accelerate(model))
after, fast = measure()
print(f"{slow:.0f} -> {fast:.0f} tokens a second; logits differ by at most {float((after - before).abs().max()):.1e}")
print("generated", model.generate(tokens[:, :8], max_new_tokens=8, do_sample=False, pad_token_id=0)[0, 8:].tolist())
isomer.torch.restore(model)
