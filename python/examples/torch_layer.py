"""A layer of Isomer in a model of PyTorch: train it, then stream from it.   usage: python torch_layer.py [STEPS]"""
import sys

import torch
import torch.nn.functional as F

from isomer.torch import Mixer

VOCABULARY, WIDTH, T = 16, 64, 32
torch.manual_seed(1)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.norms = torch.nn.ModuleList(torch.nn.RMSNorm(WIDTH) for _ in range(2))
        self.mixers = torch.nn.ModuleList([Mixer("gated-deltanet", WIDTH, heads=2), Mixer("gla", WIDTH, heads=2)])

    def forward(self, tokens):
        x = self.embedding(tokens)
        for norm, mixer in zip(self.norms, self.mixers):
            x = x + mixer(norm(x))
        return x @ self.embedding.weight.T

    @torch.no_grad()
    def stream(self, tokens, states):
        """The same for the next tokens of a stream."""
        x = self.embedding(tokens)
        for norm, state in zip(self.norms, states):
            x = x + state.prefill(norm(x))
        return x @ self.embedding.weight.T


def batch():
    """Sequences whose second half repeats the first."""
    half = torch.randint(VOCABULARY, (16, T // 2))
    return torch.cat([half, half], 1)


model = Model()
optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
for step in range(steps):
    tokens = batch()
    loss = F.cross_entropy(model(tokens)[:, T // 2 - 1 : -1].flatten(0, 1), tokens[:, T // 2 :].flatten())
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 50 == 0 or step == steps - 1:
        print(f"step {step}: loss {loss.item():.3f}")

tokens = batch()[:1]
states = [mixer.start(1) for mixer in model.mixers]
model.stream(tokens[:, :20], states)
forks = [state.copy() for state in states]  # two continuations of one prompt
print("streams agree:", torch.allclose(model.stream(tokens[:, 20:], forks), model(tokens)[:, 20:], atol=1e-4))
