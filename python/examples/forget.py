"""A memory that overwrites: the delta rule on NumPy arrays, with its gradient.   usage: python forget.py"""
import numpy as np

import isomer

rng = np.random.default_rng(1)
B, T, H, D = 1, 256, 4, 32
q, k, v = rng.standard_normal((3, B, T, H, D), dtype=np.float32)
beta = rng.uniform(0.1, 0.9, (B, T, H)).astype(np.float32)

# What is written under a key replaces what was there: outputs for every token, and the state behind the last one.
r = isomer.delta(q, k, v, beta=beta, l2norm=True)
print("outputs", r.o.shape, "state", r.final_state.shape)

# A stream goes on from that state, a token at a time.
token = rng.standard_normal((3, B, 1, H, D), dtype=np.float32)
more = isomer.delta(*token, beta=beta[:, :1], l2norm=True, initial_state=r.final_state, form="step")
print("one more token", more.o.shape)

# Gradients of sum(o^2)/2, by the same names as the command's.
grad = isomer.apply("delta", {"q": q, "k": k, "v": v, "beta": beta, "grad_o": r.o}, {"l2norm": True})
print("gradients", {name: x.shape for name, x in grad.items() if name.startswith("grad_")})
