"""The laws on tensors of PyTorch, differentiable in every floating input, initial states included.

    import isomer.torch
    r = isomer.torch.channel_decay(q, k, v, log_decay)         # arguments and results are those of isomer.channel_decay
    r.o.sum().backward()

They work under torch.compile without a break (one custom op, isomer::law, carries them all) and in torch.func's grad, vjp and
functional_call. bfloat16 and float16 are computed in float32; what has a value for every token comes back in the type of v (scan:
x), states in float32. A gradient of a gradient, vmap and forward mode are refused.

linear, short_conv, rotary and gated_norm are what layers have beside a law. Mixer(preset, width) is a layer of any preset as a module.
accelerate(model) makes a model of Hugging Face transformers use all this.
"""
from isomer._laws import attention, channel_decay, delta, scalar_decay, scan
from isomer.torch._kernels import gated_norm, linear, rotary, short_conv
from isomer.torch._laws import run, torch_empty
from isomer.torch._mixer import Mixer, MixerState, load_weights, save_weights
from isomer.torch._attention import register_attention
from isomer.torch._transformers import accelerate, restore

__all__ = ["Mixer", "MixerState", "accelerate", "attention", "channel_decay", "delta", "gated_norm", "linear", "load_weights",
           "register_attention", "restore", "rotary", "save_weights", "scalar_decay", "scan", "short_conv"]
