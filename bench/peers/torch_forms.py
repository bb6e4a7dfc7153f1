"""Plain-torch forms of the laws, [B, H, T, D], differentiable: what a careful PyTorch user would write.

Each chunk form is (q, k, v, log_decay, chunk) -> o, with log_decay [B, H, T] or None; with a decay per key channel,
(q, k, v, log_decay [B, H, T, K], bonus [H, K] or None, chunk) -> o. None of them is the best everywhere, so the adapter
times them all and reports the fastest.
"""

import torch
from torch.nn.functional import pad, scaled_dot_product_attention


def split(x, chunk):
    return x.unflatten(2, (-1, chunk))


def tril(chunk):
    return torch.ones(chunk, chunk, dtype=torch.bool).tril()


def within(cum):
    """exp(cum_t - cum_s) for s <= t in the last two axes, else 0."""
    return (cum[..., :, None] - cum[..., None, :]).masked_fill(~tril(cum.shape[-1]), float("-inf")).exp()


def gated_chunks(q, k, v, log_decay, chunk):
    """Everything batched over chunks: queries and keys with their decay to the chunk's ends, scores, chunk decay."""
    q, k, v = split(q * q.shape[-1] ** -0.5, chunk), split(k, chunk), split(v, chunk)
    scores = q @ k.transpose(-1, -2)
    if log_decay is None:
        return q, k, v, scores.tril_(), None
    cum = split(log_decay, chunk).cumsum(-1)
    last = cum[..., -1:]
    return q * cum.exp()[..., None], k * (last - cum).exp()[..., None], v, scores * within(cum), last.squeeze(-1)


def chunk_scan(q, k, v, log_decay, chunk):
    """Products batched over chunks, the state by a loop over chunks (without decay: a running sum)."""
    q, k, v, scores, last = gated_chunks(q, k, v, log_decay, chunk)
    written = k.transpose(-1, -2) @ v
    if last is None:
        state = pad(written.cumsum(2)[:, :, :-1], (0, 0, 0, 0, 1, 0))
    else:
        states = [torch.zeros_like(written[:, :, 0])]
        for decay, new in zip(last.exp()[..., None, None].unbind(2)[:-1], written.unbind(2)[:-1]):
            states.append(torch.addcmul(new, decay, states[-1]))
        state = torch.stack(states, 2)
    return (scores @ v).add_(q @ state).flatten(2, 3)


def chunk_matrix(q, k, v, log_decay, chunk):
    """As chunk_scan, with the state pass as one product by the decays between chunks (the SSD form of Mamba-2)."""
    q, k, v, scores, last = gated_chunks(q, k, v, log_decay, chunk)
    written = k.transpose(-1, -2) @ v
    chunks = written.shape[2]
    if last is None:
        carry = tril(chunks).to(v.dtype)
    else:
        carry = within(last.cumsum(-1))
    carry = pad(carry, (0, 0, 1, 0))[..., :-1, :]
    state = (carry @ written.flatten(3)).unflatten(3, written.shape[3:])
    return (scores @ v).add_(q @ state).flatten(2, 3)


def chunk_loop(q, k, v, log_decay, chunk):
    """One chunk after the other, so that all of a chunk's intermediates stay in cache."""
    cum = None if log_decay is None else split(log_decay, chunk).cumsum(-1).unbind(2)
    state, out = None, []
    for n, (qn, kn, vn) in enumerate(zip(*(split(x, chunk).unbind(2) for x in (q, k, v)))):
        scores = qn @ kn.transpose(-1, -2)
        if cum is None:
            scores, decay = scores.tril_(), None
        else:
            last = cum[n][..., -1:]
            scores, decay = scores * within(cum[n]), last.exp()[..., None]
            qn, kn = qn * cum[n].exp()[..., None], kn * (last - cum[n]).exp()[..., None]
        out.append(scores @ vn if state is None else (scores @ vn).add_(qn @ state))
        new = kn.transpose(-1, -2) @ vn
        state = new if state is None else new + (state if decay is None else decay * state)
    return torch.cat(out, 2) * q.shape[-1] ** -0.5


def channel_parts(q, k, v, log_decay, bonus):
    """Of chunks [.., chunk, D]: queries with the decay since the chunk's start, keys with the decay to its end, what the chunk
    reads of itself, and its decay. The exponents of the scores' keys are positive, so gates as slow as GLA's are needed."""
    cum = log_decay.cumsum(-2)
    total = cum[..., -1:, :]
    reached = q * (cum if bonus is None else cum - log_decay).exp()
    scores = reached @ (k * (-cum).exp()).transpose(-1, -2)
    if bonus is None:
        inside = scores.tril() @ v
    else:  # read before the update
        inside = torch.addcmul(scores.tril(-1) @ v, (q * k * bonus).sum(-1, keepdim=True), v)
    return reached, k * (total - cum).exp(), inside, total.exp().transpose(-1, -2)


def channel_scan(q, k, v, log_decay, bonus, chunk):
    """Decay per key channel; products batched over chunks, the state by a loop over chunks."""
    q, k, v, log_decay = (split(x, chunk) for x in (q * q.shape[-1] ** -0.5, k, v, log_decay))
    q, k, inside, decay = channel_parts(q, k, v, log_decay, None if bonus is None else bonus[:, None, None])
    written = k.transpose(-1, -2) @ v
    states = [torch.zeros_like(written[:, :, 0])]
    for factor, new in zip(decay.unbind(2)[:-1], written.unbind(2)[:-1]):
        states.append(torch.addcmul(new, factor, states[-1]))
    return inside.add_(q @ torch.stack(states, 2)).flatten(2, 3)


def channel_loop(q, k, v, log_decay, bonus, chunk):
    """One chunk after the other, so that all of a chunk's intermediates stay in cache."""
    state, out = None, []
    for qn, kn, vn, gn in zip(*(split(x, chunk).unbind(2) for x in (q, k, v, log_decay))):
        qn, kn, inside, decay = channel_parts(qn, kn, vn, gn, None if bonus is None else bonus[:, None])
        out.append(inside if state is None else inside.add_(qn @ state))
        new = kn.transpose(-1, -2) @ vn
        state = new if state is None else torch.addcmul(new, decay, state)
    return torch.cat(out, 2) * q.shape[-1] ** -0.5


CHUNK_FORMS = (chunk_scan, chunk_matrix, chunk_loop)
CHANNEL_FORMS = (channel_scan, channel_loop)
CHUNKS = (32, 64, 128)
CHANNEL_CHUNKS = (16, 32, 64)


def window_blocks(window, block, T):
    """Sliding-window attention as one SDPA call over blocks of queries, each with the keys it can see."""
    first = torch.arange(0, T, block)[:, None, None]
    i, j = first + torch.arange(block)[:, None], first - window + torch.arange(window + block)
    mask = torch.zeros(i.shape[0], block, window + block).masked_fill(~((j >= 0) & (j <= i) & (j > i - window)), float("-inf"))

    def run(q, k, v):
        keys, values = (pad(x, (0, 0, window, 0)).unfold(2, window + block, block).transpose(-1, -2) for x in (k, v))
        # Batch and head become one axis and blocks the other, which makes views of everything but the padding.
        out = scaled_dot_product_attention(split(q, block).flatten(0, 1), keys.flatten(0, 1), values.flatten(0, 1), attn_mask=mask)
        return out.unflatten(0, q.shape[:2]).flatten(2, 3)

    return run
