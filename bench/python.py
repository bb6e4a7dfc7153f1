"""Times the Python package: what a call costs, isomer.torch beside PyTorch's plain forms, models of transformers before and after
isomer.torch.accelerate(). Both sides take turns in one process; a ratio is the median over rounds of other time / our time.

    make bench-python BENCH='--parts overhead,laws,kernels,threads,models --rounds 5'
"""
import argparse
import pathlib
import sys
import time
from statistics import median

sys.modules["fla"] = None  # modeling files would take its GPU kernels
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import isomer  # noqa: E402
import isomer.torch  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python" / "tests_transformers"), str(ROOT / "bench" / "peers")]  # the first, too, has a models.py
# Ratios that the package sets out to reach; of calls, microseconds.
TARGETS = {"gla": 3.5, "mlstm": 4.0, "gated delta": 9.0, "attention": 1.35}
MODELS = {"mamba": (8.0, 8.0), "mamba2": (1.4, 1.6), "qwen3_5": (1.4, 1.6), "xlstm": (1.4, 1.4), "kimi_linear": (1.4, 1.4)}
CALLS = {"NumPy": 10.0, "PyTorch": 25.0}


now = time.perf_counter  # or, with --cpu, seconds of the processor


def clock(f) -> float:
    start = now()
    f()
    return now() - start


def ratio(ours, other, rounds):
    """Median seconds of both, and of other / ours, after a warm-up of each."""
    ours(), other()
    pairs = [(clock(ours), clock(other)) for _ in range(rounds)]
    return median(a for a, _ in pairs), median(b for _, b in pairs), median(b / a for a, b in pairs)


def mark(value, target, most=False) -> str:
    return "" if target is None else f"   target {target:g} {'met' if (value <= target if most else value >= target) else 'MISSED'}"


def overhead(rounds):
    print("A step of one token, 1 head of 4, microseconds a call (one thread)")
    q = np.ones((1, 1, 1, 4), np.float32)
    state = np.zeros((1, 1, 4, 4), np.float32)
    arrays = {"NumPy": (q, state), "PyTorch": (torch.from_numpy(q), torch.from_numpy(state))}
    for name, (x, s) in arrays.items():
        call = lambda: [isomer.scalar_decay(x, x, x, initial_state=s, threads=1) for _ in range(50)]
        call()
        best = min(clock(call) for _ in range(200)) / 50 * 1e6  # short enough that others do not come between
        print(f"  {name:12} {best:8.1f}{mark(best, CALLS[name], most=True)}")


def forms(T=2048, H=8, D=64):
    """name -> ours and the plain forms of it, on [B, T, H, D]; the fastest plain one counts."""
    import torch_forms
    from transformers.models.qwen3_next.modeling_qwen3_next import torch_chunk_gated_delta_rule
    from transformers.models.xlstm import modeling_xlstm

    torch.manual_seed(1)
    q, k, v = (torch.randn(1, T, H, D).requires_grad_() for _ in range(3))
    gk = F.logsigmoid(torch.randn(1, T, H, D) + 4).requires_grad_()
    g, i = F.logsigmoid(torch.randn(1, T, H) + 4).requires_grad_(), torch.randn(1, T, H).requires_grad_()
    f, beta = torch.randn(1, T, H).requires_grad_(), torch.rand(1, T, H).requires_grad_()
    heads = lambda *x: [y.transpose(1, 2) for y in x]
    gla = lambda form, chunk: lambda: form(*heads(q, k, v, gk), None, chunk)
    native = lambda chunk: lambda: modeling_xlstm.mlstm_chunkwise_native_autograd(*[x.contiguous() for x in heads(q, k, v, i, f)], chunk_size=chunk)
    delta = getattr(torch_chunk_gated_delta_rule, "__wrapped__", torch_chunk_gated_delta_rule)
    return {
        "gla": (lambda: isomer.torch.channel_decay(q, k, v, gk).o, [gla(torch_forms.channel_scan, 32), gla(torch_forms.channel_loop, 64)], [q, k, v, gk]),
        "mlstm": (lambda: isomer.torch.scalar_decay(q, k, v, log_decay=F.logsigmoid(f), log_input=i, normaliser="max").o, [native(64), native(128)],
                  [q, k, v, i, f]),
        "gated delta": (lambda: isomer.torch.delta(q, k, v, beta, log_decay=g, l2norm=True).o,
                        [lambda: delta(q, k, v, g=g, beta=beta, use_qk_l2norm_in_kernel=True)[0]], [q, k, v, g, beta]),
        "attention": (lambda: isomer.torch.attention(q, k, v).o, [lambda: F.scaled_dot_product_attention(*heads(q, k, v), is_causal=True)],
                      [q, k, v]),
    }


def step_of(f, inputs):
    return lambda: torch.autograd.grad(f().sum(), inputs)


def laws(rounds):
    print("Forward + backward, T = 2048, 8 heads of 64: PyTorch's time / ours")
    for name, (ours, others, inputs) in forms().items():
        found = [ratio(step_of(ours, inputs), step_of(other, inputs), rounds) for other in others]
        mine, other, times = min(found, key=lambda row: row[2])
        print(f"  {name:12} ours {mine * 1e3:8.1f} ms   PyTorch {other * 1e3:8.1f} ms   {times:6.2f} x{mark(times, TARGETS[name])}")


def kernels(rounds):
    print("Forward + backward, [1, 2048, 1024]: PyTorch's time / ours")
    T, C = 2048, 1024
    x, w, b = torch.randn(1, T, C, requires_grad=True), torch.randn(C, 4, requires_grad=True), torch.randn(C, requires_grad=True)
    q, gate, weight = torch.randn(1, T, 16, 64, requires_grad=True), torch.randn(1, T, 16, 64, requires_grad=True), torch.ones(64, requires_grad=True)
    angle = torch.arange(T)[:, None] * 10000.0 ** (-torch.arange(32) / 32)
    cos, sin = (torch.cat([y, y], -1)[None, :, None] for y in (angle.cos(), angle.sin()))
    half = lambda x: torch.cat([-x[..., 32:], x[..., :32]], -1)
    cases = {
        "short_conv": (lambda: isomer.torch.short_conv(x, w, b, activation="silu").o,
                       lambda: F.silu(F.conv1d(x.transpose(1, 2), w[:, None], b, padding=3, groups=C)[:, :, :T]).transpose(1, 2), [x, w, b]),
        "rotary": (lambda: isomer.torch.rotary(q), lambda: q * cos + half(q) * sin, [q]),
        "gated_norm": (lambda: isomer.torch.gated_norm(q, gate, weight), lambda: F.rms_norm(q, (64,), weight, 1e-6) * F.silu(gate), [q, gate, weight]),
    }
    for name, (ours, other, inputs) in cases.items():
        mine, theirs, times = ratio(step_of(ours, inputs), step_of(other, inputs), rounds)
        print(f"  {name:12} ours {mine * 1e3:8.1f} ms   PyTorch {theirs * 1e3:8.1f} ms   {times:6.2f} x")


def grown(name):
    """12 layers, width 512, vocabulary 8192."""
    import models

    full = dict(vocab_size=8192, hidden_size=512, num_hidden_layers=12, max_position_embeddings=2048)
    types = (["linear_attention"] * 3 + ["full_attention"]) * 3
    more = {
        "mamba": dict(state_size=16), "mamba2": dict(state_size=64, num_heads=16, head_dim=64, n_groups=1, chunk_size=256),
        "qwen3_5": dict(intermediate_size=1408, head_dim=64, num_attention_heads=8, layer_types=types, linear_key_head_dim=64,
                        linear_value_head_dim=64, linear_num_key_heads=8, linear_num_value_heads=8),
        "xlstm": dict(num_blocks=12, num_heads=8, chunk_size=64, max_inference_chunksize=4096, mode="train"),
        "kimi_linear": dict(intermediate_size=1408, head_dim=64, num_attention_heads=8, num_key_value_heads=8, layer_types=types,
                            linear_num_heads=8, linear_head_dim=64, mlp_layer_types=["dense"] * 12, kv_lora_rank=128, qk_nope_head_dim=64,
                            qk_rope_head_dim=32, v_head_dim=64),
    }
    if name == "xlstm":
        full.pop("max_position_embeddings")
    return models.build(name, **(full | more[name]))


def share_of_linear(model, run) -> float:
    """The share of products with weights in the time of a run."""
    spent, begun = [0.0], {}
    hooks = []
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            hooks.append(module.register_forward_pre_hook(lambda m, _: begun.__setitem__(m, now())))
            hooks.append(module.register_forward_hook(lambda m, *_: spent.__setitem__(0, spent[0] + now() - begun[m])))
    total = clock(run)
    [hook.remove() for hook in hooks]
    return spent[0] / total


def model_times(rounds, names, directions, tokens):
    print(f"Models of transformers: 12 layers, width 512, vocabulary 8192, T = {tokens}; tokens a second before and after accelerate()")
    ids = torch.randint(8192, (1, tokens), generator=torch.Generator().manual_seed(1))
    for name in names:
        model = grown(name)

        @torch.no_grad()
        def forward():
            model(ids, use_cache=False)

        def train():
            model.zero_grad()
            model(ids, labels=ids, use_cache=False).loss.backward()

        for what, run, target in (("forward", forward, MODELS[name][0]), ("training", train, MODELS[name][1])):
            if what not in directions:
                continue
            model.train(what == "training")
            pairs = []
            for turn in range(rounds + 1):
                isomer.torch.restore(model)
                before = clock(run)
                isomer.torch.accelerate(model)
                run() if turn == 0 else None
                pairs.append((before, clock(run)))
            pairs = pairs[1:]
            times = median(a / b for a, b in pairs)
            share = f"   products with weights are {share_of_linear(model, run):.0%} of what is left" if what == "forward" else ""
            print(f"  {name:12} {what:9} {tokens / median(a for a, _ in pairs):8.0f} -> {tokens / median(b for _, b in pairs):8.0f} tokens/s"
                  f"   {times:6.2f} x{mark(times, target)}{share}", flush=True)


def threads(rounds):
    """Do PyTorch's threads and ours get into each other's way? Products of PyTorch between laws of ours, both on two threads, beside
    the sum of the two alone."""
    print("PyTorch's threads beside ours: 10 x (product of matrices, then a law), beside both alone")
    x = torch.randn(1024, 1024)
    q, k, v = (torch.randn(1, 1024, 8, 64) for _ in range(3))
    product, law = (lambda: x @ x), (lambda: isomer.torch.scalar_decay(q, k, v))
    mixed = lambda: [(product(), law()) for _ in range(10)]
    apart = lambda: ([product() for _ in range(10)], [law() for _ in range(10)])
    with torch.no_grad():
        alone, together, times = ratio(apart, mixed, max(rounds, 9))
    print(f"  apart {alone * 1e3:.1f} ms   in turns {together * 1e3:.1f} ms   {times:.2f} x")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="overhead,laws,kernels,threads,models")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--directions", default="forward,training", help="of models")
    parser.add_argument("--tokens", type=int, default=2048, help="that models read; Mamba's training in plain PyTorch takes minutes a step with 2048")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu", action="store_true", help="seconds of the processor: with --threads 1, for a machine that others use")
    options = parser.parse_args()
    global now
    now = time.process_time if options.cpu else now
    torch.set_num_threads(options.threads)
    isomer.set_threads(options.threads)
    print(f"{options.threads} threads, {'seconds of the processor' if options.cpu else 'seconds of the clock'}")
    parts = {"overhead": overhead, "laws": laws, "kernels": kernels, "threads": threads,
             "models": lambda rounds: model_times(rounds, options.models.split(","), options.directions.split(","), options.tokens)}
    for part in options.parts.split(","):
        if part not in parts:
            parser.error(f"expected parts of {', '.join(parts)}, got {part}")
        parts[part](options.rounds)


if __name__ == "__main__":
    main()
