"""Language models in PyTorch that compute what Isomer's do, made of the weights that Isomer saved.

What a careful PyTorch user would write: projections of one input are one product, norms and attention are torch's own, and
each law is one of several functions (`forms`), of which torch_train.py takes the fastest. `step` is one token on a state.
"""

import functools
import inspect

import torch
from torch import nn
from torch.nn import functional as F

from peers import torch_forms, torch_packages

HEADS = 4
EPS = 1e-6  # of the norms between layers, and of denominators


class Weights:
    """The tensors of a file; each is taken once."""

    def __init__(self, tensors, prefix=""):
        self.tensors, self.prefix = tensors, prefix

    def below(self, name):
        return Weights(self.tensors, f"{self.prefix}{name}.")

    def take(self, *names):
        """One parameter of several below each other; a name stands for that of a weight."""
        full = [self.prefix + name for name in names]
        return nn.Parameter(torch.cat([self.tensors.pop(name if name in self.tensors else name + ".weight") for name in full]))


def split_heads(x, heads=HEADS):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x):
    return x.transpose(1, 2).flatten(2)


def split(x, *sizes):
    """The last size is what is left."""
    return x.split([*sizes, x.shape[-1] - sum(sizes)], -1)


class Mixer(nn.Module):
    law = None  # the chosen one of forms(T)


class Rotary(nn.Module):
    def __init__(self, size, length):
        super().__init__()
        angle = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, size, 2) / size)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, x, first=0):
        a, b = x.chunk(2, -1)
        cos, sin = self.cos[first:first + x.shape[2]], self.sin[first:first + x.shape[2]]
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class Softmax(Mixer):
    def __init__(self, w, length):
        super().__init__()
        self.inward, self.o = w.take("q", "k", "v"), w.take("o")
        self.rotary, self.length = Rotary(self.o.shape[1] // HEADS, length), length

    def forms(self, T):
        return {"sdpa": functools.partial(F.scaled_dot_product_attention, is_causal=True)}

    def forward(self, x):
        q, k, v = (split_heads(y) for y in F.linear(x, self.inward).chunk(3, -1))
        return F.linear(join_heads(self.law(self.rotary(q), self.rotary(k), v)), self.o)

    def start(self):
        return torch.zeros(2, 1, HEADS, self.length, self.o.shape[1] // HEADS)

    def step(self, x, cache, t):
        q, k, v = (split_heads(y) for y in F.linear(x, self.inward).chunk(3, -1))
        cache[0, :, :, t:t + 1], cache[1, :, :, t:t + 1] = self.rotary(k, t), v
        seen = cache[:, :, :, :t + 1]
        return F.linear(join_heads(F.scaled_dot_product_attention(self.rotary(q, t), seen[0], seen[1])), self.o)


class Linear(Mixer):
    """Features elu(x) + 1, divided by their sums."""

    def __init__(self, w, length):
        super().__init__()
        self.inward, self.o = w.take("q", "k", "v"), w.take("o")

    def forms(self, T):
        def summed(function, chunk, q, k, v):
            # The functions scale by K^-1/2, which cancels but for eps.
            scale = q.shape[-1] ** -0.5
            below = (q * k.cumsum(2)).sum(-1, keepdim=True) * scale
            return function(q, k, v, None, chunk) / (below + EPS * scale)

        def column(function, chunk, q, k, v):
            both = function(q, k, F.pad(v, (0, 1), value=1), None, chunk)
            return both[..., :-1] / (both[..., -1:] + EPS * q.shape[-1] ** -0.5)

        ways = [(summed, function) for function in torch_forms.CHUNK_FORMS] + [(column, torch_forms.chunk_scan)]
        return {f"{function.__name__} {chunk}, {way.__name__}": functools.partial(way, function, chunk)
                for way, function in ways for chunk in torch_forms.CHUNKS if T % chunk == 0}

    def forward(self, x):
        q, k, v = (split_heads(y) for y in F.linear(x, self.inward).chunk(3, -1))
        return F.linear(join_heads(self.law(F.elu(q) + 1, F.elu(k) + 1, v)), self.o)


class RetNet(Mixer):
    def __init__(self, w, length):
        super().__init__()
        self.inward, self.o = w.take("q", "k", "v", "gate"), w.take("o")
        self.width = self.inward.shape[1]
        self.register_buffer("log_decay", w.take("log_decay").data.expand(1, HEADS, length).contiguous())
        self.rotary = Rotary(self.width // HEADS, length)

    def forms(self, T):
        return {f"{function.__name__} {chunk}": functools.partial(function, chunk=chunk)
                for function in torch_forms.CHUNK_FORMS for chunk in torch_forms.CHUNKS if T % chunk == 0}

    def forward(self, x):
        q, k, v, gate = split(F.linear(x, self.inward), self.width, self.width, 2 * self.width)
        o = self.law(self.rotary(split_heads(q)), self.rotary(split_heads(k)), split_heads(v), self.log_decay[:, :, :x.shape[1]])
        return F.linear(F.silu(gate) * join_heads(F.layer_norm(o, o.shape[-1:])), self.o)


class Gla(Mixer):
    def __init__(self, w, length):
        super().__init__()
        self.inward, self.decay, self.bias = w.take("q", "k", "v", "gate", "decay_down"), w.take("decay"), w.take("decay.bias")
        self.norm, self.o = w.take("norm"), w.take("o")
        self.keys, self.rank = self.decay.shape

    def forms(self, T):
        return {f"{function.__name__} {chunk}": functools.partial(function, bonus=None, chunk=chunk)
                for function in torch_forms.CHANNEL_FORMS for chunk in torch_forms.CHANNEL_CHUNKS if T % chunk == 0}

    def inputs(self, x):
        width = self.o.shape[1]
        q, k, v, gate, decay = split(F.linear(x, self.inward), self.keys, self.keys, width, width)
        log_decay = F.logsigmoid(F.linear(decay, self.decay, self.bias)) / 16
        return *(split_heads(y) for y in (q, k, v, log_decay)), gate

    def output(self, o, gate):
        return F.linear(F.silu(gate) * join_heads(F.rms_norm(o, self.norm.shape, self.norm, 1e-5)), self.o)

    def forward(self, x):
        q, k, v, log_decay, gate = self.inputs(x)
        return self.output(self.law(q, k, v, log_decay), gate)

    def start(self):
        return torch.zeros(1, HEADS, self.keys // HEADS, self.o.shape[1] // HEADS)

    def step(self, x, state, t):
        q, k, v, log_decay, gate = self.inputs(x)
        state.mul_(log_decay.exp().transpose(-1, -2)).addcmul_(k.transpose(-1, -2), v)
        return self.output(q @ state * q.shape[-1] ** -0.5, gate)


class Mlstm(Mixer):
    def __init__(self, w, length):
        super().__init__()
        self.inward, self.o, self.norm = w.take("q", "k", "v", "gate", "i", "f"), w.take("o"), w.take("norm")
        self.bias = w.take("i.bias", "f.bias")

    def forms(self, T):
        kernels = torch_packages.load("mlstm_kernels.torch.chunkwise.native")
        functions = (kernels.mlstm_chunkwise__native_autograd, kernels.mlstm_chunkwise__native_custbw)
        return {f"{function.__name__.rpartition('__')[2]} {chunk}": functools.partial(function, chunk_size=chunk)
                for function in functions for chunk in (64, 128) if T % chunk == 0}

    def forward(self, x):
        width = self.o.shape[1]
        q, k, v, gate, gates = split(F.linear(x, self.inward), width // 2, width // 2, width, width)
        i, f = (15 * torch.tanh((gates + self.bias) / 15)).transpose(1, 2).chunk(2, 1)
        o = self.law(*(split_heads(y) for y in (q, k, v)), i, f)
        o = F.layer_norm(o, o.shape[-1:], eps=EPS) * self.norm[:, None]
        return F.linear(torch.sigmoid(gate) * join_heads(o), self.o)


def causal_convolution(x, weight, bias=None):
    """Of each channel over the last tokens, and SiLU. x [B, T, C], weight [C, taps]."""
    taps = weight.shape[1]
    y = F.conv1d(F.pad(x.transpose(1, 2), (taps - 1, 0)), weight[:, None], bias, groups=weight.shape[0])
    return F.silu(y).transpose(1, 2)


class GatedDelta(Mixer):
    def __init__(self, w, length):
        super().__init__()
        self.inward, self.o = w.take("q", "k", "v", "gate", "beta", "step"), w.take("o")
        self.filters, self.bias, self.a_log = w.take("q_conv", "k_conv", "v_conv"), w.take("step.bias"), w.take("a_log")
        self.norm = w.take("norm")

    def forms(self, T):
        function = torch_packages.load("transformers.models.qwen3_next.modeling_qwen3_next").torch_chunk_gated_delta_rule
        function = inspect.unwrap(function)  # without the GPU kernels that transformers would take instead
        return {f"transformers chunk {chunk}": functools.partial(function, chunk_size=chunk, use_qk_l2norm_in_kernel=True)
                for chunk in (32, 64, 128) if T % chunk == 0}

    def forward(self, x):
        inner = self.o.shape[1]
        qkv, gate, beta, step = split(F.linear(x, self.inward), 2 * inner, inner, HEADS)
        q, k, v = split(causal_convolution(qkv, self.filters), inner // 2, inner // 2)
        q, k, v = (y.unflatten(-1, (HEADS, -1)) for y in (q, k, v))
        log_decay = -F.softplus(step + self.bias) * self.a_log[:, 0].exp()
        o = self.law(q, k, v, g=log_decay, beta=torch.sigmoid(beta))[0]
        return F.linear(F.silu(gate) * F.rms_norm(o, self.norm.shape, self.norm, 1e-5).flatten(2), self.o)


class Mamba(Mixer):
    def __init__(self, w, length):
        super().__init__()
        self.inward, self.o, self.filters, self.bias = w.take("u", "z"), w.take("o"), w.take("conv"), w.take("conv.bias")
        self.selected = w.take("b", "c", "step_down")
        self.step, self.step_bias, self.a_log, self.d = w.take("step"), w.take("step.bias"), w.take("a_log"), w.take("d")

    def forms(self, T):
        block = torch_packages.load("mambapy.mamba").MambaBlock
        return {"mambapy selective_scan": functools.partial(block.selective_scan, None)}

    def forward(self, x):
        u, z = F.linear(x, self.inward).chunk(2, -1)
        u = causal_convolution(u, self.filters, self.bias)
        b, c, step = split(F.linear(u, self.selected), *2 * self.a_log.shape[1:])
        step = F.softplus(F.linear(step, self.step, self.step_bias))
        return F.linear(F.silu(z) * self.law(u, step, -self.a_log.exp(), b, c, self.d), self.o)


MIXERS = {"softmax": Softmax, "linear-elu": Linear, "retnet": RetNet, "gla": Gla, "mlstm": Mlstm, "gated-deltanet": GatedDelta,
          "mamba": Mamba}


class Block(nn.Module):
    def __init__(self, w, mixer, length):
        super().__init__()
        self.norm1, self.norm2 = w.below("norm1").take("weight"), w.below("norm2").take("weight")
        self.mixer = mixer(w.below("mixer"), length)
        self.up, self.down = w.below("mlp").take("up"), w.below("mlp").take("down")

    def mlp(self, x):
        h = F.linear(F.rms_norm(x, self.norm2.shape, self.norm2, EPS), self.up)
        return x + F.linear(F.gelu(h, approximate="tanh"), self.down)

    def forward(self, x):
        return self.mlp(x + self.mixer(F.rms_norm(x, self.norm1.shape, self.norm1, EPS)))

    def step(self, x, state, t):
        return self.mlp(x + self.mixer.step(F.rms_norm(x, self.norm1.shape, self.norm1, EPS), state, t))


class Model(nn.Module):
    """Takes all tensors of the file: one that is left over, or missing, is an error."""

    def __init__(self, tensors, preset, layers, length):
        super().__init__()
        w = Weights(tensors)
        self.embedding, self.norm = w.take("embedding"), w.take("norm")
        self.blocks = nn.ModuleList(Block(w.below(f"layers.{i}"), MIXERS[preset], length) for i in range(layers))
        if tensors:
            raise ValueError(f"the model has no {', '.join(tensors)}")

    def logits(self, x):
        return F.linear(F.rms_norm(x, self.norm.shape, self.norm, EPS), self.embedding)

    def head_loss(self, x, labels):
        return F.cross_entropy(self.logits(x).flatten(0, 1), labels.flatten())

    def forward(self, tokens, labels):
        x = F.embedding(tokens, self.embedding)
        for block in self.blocks:
            x = block(x)
        return self.head_loss(x, labels)

    def step(self, token, states, t):
        x = F.embedding(token, self.embedding)
        for block, state in zip(self.blocks, states):
            x = block.step(x, state, t)
        return self.logits(x)[0, -1].argmax()
