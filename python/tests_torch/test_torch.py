"""The laws on tensors of PyTorch: gradients, torch.compile, transformations, processes."""
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

import isomer
import isomer.torch
from isomer import _engine

torch.manual_seed(1)


def normal(*shape, kind=torch.float64, grad=True):
    return torch.randn(*shape, dtype=kind).requires_grad_(grad)


def decay(*shape, kind=torch.float64):
    return (-torch.rand(*shape, dtype=kind)).requires_grad_()


def unit(*shape, kind=torch.float64):
    return (0.1 + 0.8 * torch.rand(*shape, dtype=kind)).requires_grad_()


def cases(T=5, kind=torch.float64):
    """name -> function, tensors by name, options: every law with its gates and states."""
    B, H, G, K, V = 2, 4, 2, 3, 2
    n = lambda *shape: normal(*shape, kind=kind)
    qkv = lambda: {"q": n(B, T, H, K), "k": n(B, T, G, K), "v": n(B, T, G, V)}
    g, b = (lambda *s: decay(*s, kind=kind)), (lambda *s: unit(*s, kind=kind))
    return {
        "attention": (isomer.torch.attention, {**qkv(), "log_forget": g(B, T, H)}, {}),
        "window": (isomer.torch.attention, qkv(), {"window": 3, "sinks": 1}),
        "taylor": (isomer.torch.attention, qkv(), {"kernel": "taylor", "order": 4, "normaliser": "rms"}),
        "linear": (isomer.torch.scalar_decay, {**qkv(), "initial_state": n(B, H, K, V)}, {}),
        "mlstm": (isomer.torch.scalar_decay, {**qkv(), "log_decay": g(B, T, H), "log_input": n(B, T, H)}, {"normaliser": "max"}),
        "gla": (isomer.torch.channel_decay, {**qkv(), "log_decay": g(B, T, H, K), "initial_state": n(B, H, K, V)}, {}),
        "rwkv6": (isomer.torch.channel_decay, {**qkv(), "log_decay": g(B, T, H, K), "bonus": n(H, K)}, {"read": "before"}),
        "delta": (isomer.torch.delta, {**qkv(), "beta": b(B, T, H), "log_decay": g(B, T, H), "initial_state": n(B, H, K, V)},
                  {"l2norm": True}),
        "kda": (isomer.torch.delta, {**qkv(), "beta": b(B, T, H), "log_decay": g(B, T, H, K)}, {"l2norm": True}),
        "scan": (isomer.torch.scan, {"x": n(B, T, 3), "log_decay": g(B, T, 3), "angle": n(B, T, 3), "initial_state": n(B, 3)}, {}),
        "s6": (isomer.torch.scan, {"x": n(B, T, 3), "step": b(B, T, 3), "a": g(3, 2), "b": n(B, T, 2), "c": n(B, T, 2), "d": n(3)}, {}),
    }


NAMES = list(cases())


@pytest.fixture(params=NAMES)
def case(request):
    return cases()[request.param]


def outputs_of(result):
    """Names of those that carry a gradient."""
    skip = {"log_sum", "final_max", "final_count"}
    return [name for name, x in zip(result._fields, result) if x is not None and name not in skip]


def closed(case):
    law, tensors, options = case
    wanted = outputs_of(law(**tensors, **options))

    def function(*values):
        result = law(**dict(zip(tensors, values)), **options)
        return tuple([getattr(result, name) for name in wanted])

    return function, tuple(tensors.values())


def test_gradcheck(case):
    function, values = closed(case)
    # The stabiliser of mLSTM is a scale at which gradients of states are taken: slopes of o alone.
    only_o = (lambda *x: function(*x)[0]) if case[2].get("normaliser") == "max" else function
    assert torch.autograd.gradcheck(only_o, values)


def test_opcheck(case):
    law, tensors, options = case
    text = "\n".join(f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in options.items())
    for record in (False, True):
        values = [x.detach() for x in tensors.values()] if not record else list(tensors.values())
        torch.library.opcheck(torch.ops.isomer.law.default,
                              (values, f"{' '.join(tensors)}\t{law.__name__}\t{text}\tauto\t1", record))


def test_numpy_agrees(case):
    law, tensors, options = case
    with torch.no_grad():
        got = law(**tensors, **options)
    want = getattr(isomer, law.__name__)(**{name: x.detach().numpy() for name, x in tensors.items()}, **options)
    assert got._fields == want._fields
    for a, b in zip(got, want):
        assert (a is None) == (b is None) and (a is None or np.array_equal(a.numpy(), b))


def test_compile_has_no_break(case):
    function, values = closed(case)
    torch._dynamo.reset()
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    for got, want in zip(compiled(*values), function(*values)):
        assert torch.equal(got, want)
    loss = lambda f: sum((x * torch.arange(x.numel(), dtype=x.dtype).reshape(x.shape)).sum() for x in f(*values))
    for got, want in zip(torch.autograd.grad(loss(compiled), values), torch.autograd.grad(loss(function), values)):
        assert torch.allclose(got, want, atol=1e-12)


def test_compile_of_other_lengths():
    torch._dynamo.reset()
    compiled = torch.compile(lambda q, k, v: isomer.torch.scalar_decay(q, k, v).o * 2, fullgraph=True, dynamic=True, backend="aot_eager")
    for T in (4, 7, 12):
        q, k, v = (normal(1, T, 2, 3) for _ in range(3))
        assert torch.equal(compiled(q, k, v), isomer.torch.scalar_decay(q, k, v).o * 2)


def test_vjp(case):
    function, values = closed(case)
    out, back = torch.func.vjp(function, *[x.detach() for x in values])
    grads = back(tuple(torch.ones_like(x) for x in out))
    want = torch.autograd.grad(sum(x.sum() for x in function(*values)), values)
    for a, b in zip(grads, want):
        assert torch.allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(case, mode):
    law, tensors, options = case
    before = _engine.tapes()
    with mode():
        result = law(**tensors, **options)
    assert not any(x.requires_grad for x in result if x is not None)
    assert _engine.tapes() == before


def test_tapes_end_with_their_graph():
    before = _engine.tapes()
    q = normal(1, 64, 2, 8, kind=torch.float32)
    o = isomer.torch.scalar_decay(q, q, q).o
    assert _engine.tapes() == before + 1
    o.sum().backward()
    del o
    assert _engine.tapes() == before
    dropped = isomer.torch.scalar_decay(q, q, q).o
    del dropped
    assert _engine.tapes() == before


def test_backward_twice_over_one_graph():
    q = normal(1, 40, 2, 8)
    o = isomer.torch.scalar_decay(q, q, q).o
    first = torch.autograd.grad(o.sum(), q, retain_graph=True)[0]
    assert torch.equal(torch.autograd.grad(o.sum(), q)[0], first)


def test_checkpointing():
    from torch.utils.checkpoint import checkpoint

    q, k, v = (normal(1, 40, 2, 8) for _ in range(3))
    layer = lambda q, k, v: isomer.torch.scalar_decay(q.sin(), k, v).o
    want = torch.autograd.grad(layer(q, k, v).square().sum(), (q, k, v))
    for reentrant in (False, True):
        for x in (q, k, v):
            x.grad = None
        checkpoint(layer, q, k, v, use_reentrant=reentrant).square().sum().backward()
        for x, grad in zip((q, k, v), want):
            assert torch.allclose(x.grad, grad, rtol=1e-12, atol=1e-12)


def test_a_gradient_of_a_gradient_is_refused():
    q = normal(1, 4, 1, 2)
    grad, = torch.autograd.grad(isomer.torch.scalar_decay(q, q, q).o.sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="gradient of a gradient"):
        grad.sum().backward()


def test_strides_and_grouped_heads():
    q, k, v = (normal(2, 4, 20, 6).transpose(1, 2), normal(2, 2, 20, 6).transpose(1, 2), normal(2, 20, 2, 5))
    o = isomer.torch.attention(q, k, v).o
    want = torch.nn.functional.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2).repeat_interleave(2, 1),
                                                            v.transpose(1, 2).repeat_interleave(2, 1), is_causal=True)
    assert torch.allclose(o, want.transpose(1, 2), atol=1e-12)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_half_precision(kind):
    q, k, v = (torch.randn(1, 12, 2, 4).to(kind).requires_grad_() for _ in range(3))
    r = isomer.torch.scalar_decay(q, k, v)
    assert r.o.dtype == kind and r.final_state.dtype == torch.float32
    want = isomer.torch.scalar_decay(q.float(), k.float(), v.float()).o
    assert torch.equal(r.o, want.to(kind))
    r.o.float().sum().backward()
    assert q.grad.dtype == kind


def test_views_whose_sign_is_turned():
    z = torch.randn(1, 9, 2, 4, dtype=torch.complex64)
    q = z.conj().imag
    assert q.is_neg()
    want = isomer.torch.scalar_decay(q.resolve_neg(), z.real, z.real)
    assert torch.equal(isomer.torch.scalar_decay(q, z.real, z.real).o, want.o)
    tensors = {"q": q, "k": z.real, "v": z.real, "grad_o": q}
    for name, got in isomer.apply("scalar_decay", tensors).items():
        assert torch.equal(got, isomer.apply("scalar_decay", {key: x.resolve_neg() for key, x in tensors.items()})[name]), name
    leaf = z.real.clone().requires_grad_()
    o = isomer.torch.scalar_decay(leaf, leaf, leaf).o
    grad, = torch.autograd.grad(o, leaf, q, retain_graph=True)
    assert torch.equal(grad, torch.autograd.grad(o, leaf, q.resolve_neg())[0])


def test_apply_takes_parameters():
    q = torch.nn.Parameter(torch.randn(1, 9, 2, 4))
    made = isomer.apply("scalar_decay", {"q": q, "k": q, "v": q, "grad_o": torch.ones(1, 9, 2, 4)})
    assert all(isinstance(x, torch.Tensor) for x in made.values()) and not made["o"].requires_grad
    assert torch.equal(made["o"], isomer.torch.scalar_decay(q, q, q).o)

    class Own(torch.Tensor):
        pass

    assert isinstance(isomer.attention(*[q.detach().as_subclass(Own)] * 3).o, torch.Tensor)


def test_inductor():
    """The compiler that torch.compile takes by default, on one law."""
    torch._dynamo.reset()
    q, k, v = (normal(1, 20, 2, 8, kind=torch.float32) for _ in range(3))
    layer = lambda q, k, v: isomer.torch.scalar_decay(q.sin(), k * 2, v).o.square().sum()
    got = torch.autograd.grad(torch.compile(layer, fullgraph=True)(q, k, v), (q, k, v))
    for a, b in zip(got, torch.autograd.grad(layer(q, k, v), (q, k, v))):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-5)


def test_transformations():
    """What of torch.func works: grad, vjp, functional_call and what is made of them. vmap, and with it jacrev, and forward mode do not."""
    q = torch.randn(1, 6, 2, 3, dtype=torch.float64)
    loss = lambda q: isomer.torch.scalar_decay(q, q, q).o.sum()
    want = torch.autograd.grad(loss(q.requires_grad_()), q)[0]
    q = q.detach()
    assert torch.allclose(torch.func.grad(loss)(q), want)
    assert torch.allclose(torch.func.grad_and_value(loss)(q)[0], want)
    for call in (lambda: torch.func.vmap(loss)(q[None]), lambda: torch.func.jacrev(lambda q: isomer.torch.scalar_decay(q, q, q).o)(q),
                 lambda: torch.func.jvp(loss, (q,), (q,)), lambda: torch.func.grad(lambda q: torch.func.grad(loss)(q).sum())(q)):
        with pytest.raises((RuntimeError, ValueError)):
            call()


def test_what_of_transformations_is_refused():
    """By a line that says so, and forward mode wherever it begins: a tangent is not dropped."""
    q, mixer = torch.randn(1, 5, 2, 8), isomer.torch.Mixer("gla", 16)
    for law, name in ((lambda q: isomer.torch.attention(q, q, q).o, "law"), (lambda q: mixer(q.flatten(2)), "mixer"),
                      (isomer.torch.rotary, "law")):
        for call in (lambda: torch.func.vmap(law)(q[None]), lambda: torch.func.jacrev(law)(q)):
            with pytest.raises(RuntimeError, match=f"isomer: expected a {name} without vmap"):
                call()
        with pytest.raises(RuntimeError, match="isomer: .*got forward mode"):
            torch.func.jvp(law, (q,), (q,))
        with torch.autograd.forward_ad.dual_level(), pytest.raises(RuntimeError, match="isomer: .*got forward mode"):
            law(torch.autograd.forward_ad.make_dual(q, q))
        leaf = q.clone().requires_grad_()
        o = law(leaf)
        with pytest.raises(ValueError, match="as a dense tensor, got one of vmap or of batched gradients"):
            torch.autograd.grad(o, leaf, torch.ones(3, *o.shape), is_grads_batched=True)


def test_packed():
    q, k, v = (normal(1, 30, 2, 4) for _ in range(3))
    offsets = torch.tensor([0, 11, 30], dtype=torch.int32)
    r = isomer.torch.scalar_decay(q, k, v, offsets=offsets)
    assert r.final_state.shape == (2, 2, 4, 4)
    own = isomer.torch.scalar_decay(q[:, 11:], k[:, 11:], v[:, 11:])
    assert torch.allclose(r.o[:, 11:], own.o, atol=1e-12)
    r.o.sum().backward()


def test_refusals():
    q = torch.zeros(1, 3, 2, 4)
    for call, text in ((lambda: isomer.torch.attention(q, q, q.numpy()), "expected v to be a tensor of PyTorch"),
                       (lambda: isomer.torch.attention(q, q, q.to("meta")), "in the memory of the CPU"),
                       (lambda: isomer.torch.attention(q, q, q.to(torch.complex64)), "expected v of type"),
                       (lambda: isomer.torch.attention(q, q, q.to_sparse()), "attention: expected v as a dense tensor"),
                       (lambda: isomer.torch.attention(q, q, q[:, :2]), "expected v of shape"),
                       (lambda: isomer.torch.attention(q, q, None), "attention: expected an input v, found none"),
                       (lambda: isomer.torch.scan(x=None, log_decay=q[0]), "scan: expected an input x, found none"),
                       (lambda: isomer.apply("attention", {"q": q, "k": q, "v": q.to("meta")}), "in the memory of the CPU"),
                       (lambda: isomer.torch.attention(q, q, q.requires_grad_(), kernel="x"), "kernel")):
        with pytest.raises(ValueError, match=text):
            call()


def test_another_default_device():
    """Results are where the tensors are, whatever device new ones would be made on."""
    q, mixer = torch.randn(1, 3, 2, 4), isomer.torch.Mixer("gla", 16, seed=3)
    want, x = isomer.torch.attention(q, q, q).o, torch.randn(1, 3, 16)
    with torch.device("meta"):
        assert torch.equal(isomer.torch.attention(q, q, q).o, want)
        assert torch.equal(mixer(x), isomer.torch.Mixer("gla", 16, seed=3)(x))
        assert isomer.torch.Mixer("gla", 16)(x).shape == x.shape
        q.requires_grad_()
        assert torch.autograd.grad(isomer.torch.attention(q, q, q).o.sum(), q)[0].is_cpu


@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
def test_tracing_keeps_the_law():
    q, other, mixer = torch.randn(1, 3, 2, 4), torch.randn(1, 3, 2, 4), isomer.torch.Mixer("gla", 8, seed=3)
    law = lambda x: isomer.torch.scalar_decay(x, x, x).o
    with torch.no_grad():
        assert torch.equal(torch.jit.trace(law, (q,))(other), law(other))
        assert torch.equal(torch.jit.trace(mixer, (q.flatten(2),))(other.flatten(2)), mixer(other.flatten(2)))
        assert torch.equal(torch.export.export(mixer, (q.flatten(2),)).module()(other.flatten(2)), mixer(other.flatten(2)))


class Laws(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        q = torch.full((1, 40, 2, 4), 0.1 * (i + 1))
        return isomer.torch.attention(q, q, q, threads=2).o


def test_workers_of_a_loader():
    isomer.torch.attention(*[torch.ones(1, 40, 2, 4)] * 3, threads=2)  # threads are there before the fork
    items = list(torch.utils.data.DataLoader(Laws(), batch_size=2, num_workers=2))
    assert torch.equal(torch.cat(items), torch.stack([Laws()[i] for i in range(6)]))


FORKED = """
import os, signal
import torch
import isomer.torch
torch.manual_seed(1)
x = torch.randn(1, 300, 16).requires_grad_()
mixer = isomer.torch.Mixer("gla", 16, seed=3)
layers = {"law": lambda: isomer.torch.scalar_decay(*[x.unflatten(2, (2, 8))] * 3, threads=2).o, "mixer": lambda: mixer(x, threads=2)}
before = {name: layer() for name, layer in layers.items()}
child = os.fork()
if child == 0:
    try:
        signal.alarm(60)
        torch.set_num_threads(1)  # threads of OpenMP are not here, either
        for name, layer in layers.items():
            first, second = (torch.autograd.grad(y.square().sum(), x)[0] for y in (before[name], layer()))
            assert torch.equal(first, second), name
        os._exit(0)
    finally:
        os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_backward_after_a_fork():
    """In a child, of what was run before the fork and behind it. The parent must not have gone back: PyTorch refuses that."""
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


INTERRUPTED = """
import time
import torch
import isomer.torch
x = torch.ones(1, 30000, 8, 32, requires_grad=True)
began = time.monotonic()
o = isomer.torch.attention(x, x, x, threads=2).o.sum()
print(time.monotonic() - began, flush=True)
try:
    o.backward()
except KeyboardInterrupt:
    y = x.detach()[:, :9].requires_grad_()
    isomer.torch.attention(y, y, y, threads=2).o.sum().backward()
    print("interrupted", bool(y.grad.isfinite().all()), flush=True)
"""


def test_ctrl_c_ends_a_backward_pass():
    """In the middle of its tasks, of which each has a head and takes longer than half of forward; all threads end theirs."""
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as child:
        forward = float(child.stdout.readline())
        time.sleep(forward / 4)
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted True\n" and time.monotonic() - began < max(0.5, forward / 6)


def test_memory_stays_flat():
    resident = lambda: int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    q = normal(1, 64, 2, 8, kind=torch.float32)

    def step():
        torch.autograd.grad(isomer.torch.delta(q, q, q, beta=torch.ones(1, 64, 2), l2norm=True).o.sum(), q)

    [step() for _ in range(300)]
    before = resident()
    [step() for _ in range(10000)]
    assert resident() - before < 8 << 20
