"""The laws once more, from their formulas, as plain loops over tokens in NumPy and double. Nothing here is fast, nothing is shared with the engine."""
import numpy as np


def heads(x, H):
    """[B,T,G,D] read by H heads: head h reads h // (H/G)."""
    return np.repeat(x, H // x.shape[2], axis=2)


def f64(*arrays):
    return [None if x is None else np.asarray(x, dtype=np.float64) for x in arrays]


def attention(q, k, v, log_forget=None, scale=None, causal=True, window=0, bias=None, block=0):
    q, k, v, log_forget, bias = f64(q, k, v, log_forget, bias)
    (B, T, H, K), S = q.shape, k.shape[1]
    k, v = heads(k, H), heads(v, H)
    scale = K**-0.5 if scale is None else scale
    c = np.zeros((B, S, H)) if log_forget is None else np.cumsum(log_forget, axis=1)
    o = np.zeros((B, T, H, v.shape[3]))
    log_sum = np.zeros((B, T, H))
    for b, t, h in np.ndindex(B, T, H):
        i = t + S - T if causal else t
        seen = [j for j in range(S) if not (causal and j > i) and not (window and (i - j >= window or j - i >= window))
                and not (block and abs(i // block - j // block) > 1)]
        logits = np.array([scale * q[b, t, h] @ k[b, j, h] + c[b, i, h] - c[b, j, h] for j in seen])
        if bias is not None:
            first = 1 - bias.shape[1] if causal else -(bias.shape[1] // 2)
            logits += bias[h, np.clip(np.array(seen) - i - first, 0, bias.shape[1] - 1)]
        top = logits.max()
        weights = np.exp(logits - top)
        o[b, t, h] = weights @ v[b, seen, h] / weights.sum()
        log_sum[b, t, h] = top + np.log(weights.sum())
    return o, log_sum


def matrix_state(q, k, v, update, scale, initial_state=None, read_before=False, bonus=None):
    """Walks S [K,V] of every sequence and head over the tokens; update(b, t, h, S) is the law."""
    (B, T, H, K), V = q.shape, v.shape[3]
    S = np.zeros((B, H, K, V)) if initial_state is None else np.array(initial_state, dtype=np.float64)
    o = np.zeros((B, T, H, V))
    for b, t, h in np.ndindex(B, T, H):
        before = S[b, h].copy()
        S[b, h] = update(b, t, h, S[b, h])
        if read_before:
            extra = 0 if bonus is None else (q[b, t, h] * bonus[h] * k[b, t, h]).sum() * v[b, t, h]
            o[b, t, h] = scale * (before.T @ q[b, t, h] + extra)
        else:
            o[b, t, h] = scale * S[b, h].T @ q[b, t, h]
    return o, S


def scalar_decay(q, k, v, log_decay=None, initial_state=None, scale=None):
    q, k, v, log_decay = f64(q, k, v, log_decay)
    H, K = q.shape[2:]
    k, v = heads(k, H), heads(v, H)
    if log_decay is None:
        log_decay = np.zeros(q.shape[:3])
    log_decay = np.broadcast_to(log_decay, q.shape[:3])
    update = lambda b, t, h, S: np.exp(log_decay[b, t, h]) * S + np.outer(k[b, t, h], v[b, t, h])
    return matrix_state(q, k, v, update, K**-0.5 if scale is None else scale, initial_state)


def mlstm(q, k, v, log_decay, log_input):
    """normaliser=max: the true state, without the stabiliser; o = S q / max(|n.q|, 1)."""
    q, k, v, log_decay, log_input = f64(q, k, v, log_decay, log_input)
    (B, T, H, K), V = q.shape, v.shape[3]
    k, v = heads(k, H), heads(v, H)
    o = np.zeros((B, T, H, V))
    for b, h in np.ndindex(B, H):
        S, n = np.zeros((K, V)), np.zeros(K)
        for t in range(T):
            f, i = np.exp(log_decay[b, t, h]), np.exp(log_input[b, t, h])
            S, n = f * S + i * np.outer(k[b, t, h], v[b, t, h]), f * n + i * k[b, t, h]
            x = q[b, t, h] * K**-0.5
            o[b, t, h] = S.T @ x / max(abs(n @ x), 1)
    return o


def channel_decay(q, k, v, log_decay, initial_state=None, bonus=None, read="after", scale=None):
    q, k, v, log_decay, bonus = f64(q, k, v, log_decay, bonus)
    H, K = q.shape[2:]
    k, v = heads(k, H), heads(v, H)
    update = lambda b, t, h, S: np.exp(log_decay[b, t, h])[:, None] * S + np.outer(k[b, t, h], v[b, t, h])
    return matrix_state(q, k, v, update, K**-0.5 if scale is None else scale, initial_state, read == "before", bonus)


def delta(q, k, v, beta, log_decay=None, initial_state=None, scale=None, l2norm=False):
    q, k, v, beta, log_decay = f64(q, k, v, beta, log_decay)
    H, K = q.shape[2:]
    k, v = heads(k, H), heads(v, H)
    if l2norm:
        q, k = (x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6) for x in (q, k))

    def update(b, t, h, S):
        g = 0.0 if log_decay is None else log_decay[b, t, h]
        D = np.exp(g)[..., None] * S if np.ndim(g) else np.exp(g) * S
        return D - beta[b, t, h] * np.outer(k[b, t, h], k[b, t, h] @ D - v[b, t, h])

    return matrix_state(q, k, v, update, K**-0.5 if scale is None else scale, initial_state)


def low_rank(q, k, v, log_decay, a, b, initial_state=None):
    q, k, v, log_decay, a, b_ = f64(q, k, v, log_decay, a, b)
    H, K = q.shape[2:]
    k, v = heads(k, H), heads(v, H)

    def update(i, t, h, S):
        read = a[i, t, h] @ S
        return np.exp(log_decay[i, t, h])[:, None] * S + np.outer(b_[i, t, h], read) + np.outer(k[i, t, h], v[i, t, h])

    return matrix_state(q, k, v, update, K**-0.5, initial_state)


def scan(x, log_decay, angle=None, initial_state=None):
    x, log_decay, angle = f64(x, log_decay, angle)
    decay = np.exp(log_decay + (0 if angle is None else 1j * angle))
    h = np.zeros(x.shape, dtype=decay.dtype)
    state = np.zeros(x[:, 0].shape, dtype=decay.dtype) if initial_state is None else np.array(initial_state, dtype=decay.dtype)
    for t in range(x.shape[1]):
        state = decay[:, t] * state + x[:, t]
        h[:, t] = state
    return h, state


def s6(x, step, a, b, c, d=None):
    x, step, a, b, c, d = f64(x, step, a, b, c, d)
    B, T, C = x.shape
    o, state = np.zeros(x.shape), np.zeros((B, C, a.shape[1]))
    for t in range(T):
        state = np.exp(step[:, t, :, None] * a) * state + (step[:, t] * x[:, t])[:, :, None] * b[:, t, None, :]
        o[:, t] = (state * c[:, t, None, :]).sum(-1) + (0 if d is None else d * x[:, t])
    return o, state
