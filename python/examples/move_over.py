"""Code for flash-linear-attention's ops, on a CPU: the import is all that changes.   usage: python move_over.py"""
import torch
import torch.nn.functional as F

from isomer.fla import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule  # was: from fla.ops.gated_delta_rule import ...

B, T, H, K, V = 1, 512, 4, 64, 64
torch.manual_seed(1)
q, k, v = torch.randn(B, T, H, K), F.normalize(torch.randn(B, T, H, K), dim=-1), torch.randn(B, T, H, V, requires_grad=True)
beta, g = torch.rand(B, T, H), F.logsigmoid(torch.randn(B, T, H))

o, state = chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True)
o.square().mean().backward()
print("outputs", tuple(o.shape), "state", tuple(state.shape), "gradient of v", float(v.grad.norm()))

# Decoding goes on from the state, a token at a time.
token = [x[:, -1:] for x in (q, k, v.detach())]
with torch.no_grad():
    o, state = fused_recurrent_gated_delta_rule(*token, g=g[:, -1:], beta=beta[:, -1:], initial_state=state, output_final_state=True)
print("one more token", tuple(o.shape))
