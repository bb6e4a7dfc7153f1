"""Layers of every preset as modules: against the engine's own models, slopes, streams, files, refusals."""
import copy
import gc
import io
import pickle
import threading

import pytest
import torch
import torch.nn.functional as F

import isomer
import isomer.torch
from isomer import _engine
from isomer.torch import Mixer

_table = isomer.list()
PRESETS = [row["preset"] for row in (_table if isinstance(_table, list) else _table.to_dict("records"))]
WIDTH = 16


def tokens(B=2, T=7, kind=torch.float32, seed=0, width=WIDTH):
    return torch.randn(B, T, width, dtype=kind, generator=torch.Generator().manual_seed(seed))


def shaken(mixer):
    """Parameters away from where they start, so that nothing is zero by chance."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for p in mixer.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=generator).to(p.dtype))
    return mixer


def test_every_preset_is_there():
    assert len(PRESETS) == 41


@pytest.mark.parametrize("preset", PRESETS)
def test_slopes(preset):
    mixer = shaken(Mixer(preset, WIDTH, seed=3)).double()
    names = [name for name, _ in mixer.named_parameters()]
    x = tokens(T=5, kind=torch.float64).requires_grad_()

    def run(x, *values):
        return torch.func.functional_call(mixer, dict(zip(names, values)), (x,))

    values = [p.detach().clone().requires_grad_() for p in mixer.parameters()]
    assert torch.autograd.gradcheck(run, (x, *values), fast_mode=True, atol=1e-5)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A model with a layer of every preset, and nothing else between the residuals."""
    folder = tmp_path_factory.mktemp("mixers")
    (folder / "all.toml").write_text(f"""
[model]
layers = "{",".join(PRESETS)}"
width = {WIDTH}
mlp = "none"
[task]
name = "induction"
length = 12
vocabulary = 8
[train]
steps = 1
batch = 2
""")
    return isomer.train(folder / "all.toml", out=folder / "run", progress=False)


def as_modules(weights):
    mixers = [Mixer(preset, WIDTH, layer=i, layers=len(PRESETS)).load_layer(weights, f"layers.{i}.mixer") for i, preset in enumerate(PRESETS)]
    return torch.nn.ModuleList(mixers)


def test_checkpoints_both_ways(run, tmp_path):
    weights = isomer.torch.load_weights(run.path)
    mixers = as_modules(weights)
    ids, targets = torch.randint(weights["embedding.weight"].shape[0], (2, 2, 9), generator=torch.Generator().manual_seed(1))
    others = {name: x.clone().requires_grad_() for name, x in weights.items() if ".mixer." not in name and not name.startswith("shared.")}

    x = others["embedding.weight"][ids]
    for i, mixer in enumerate(mixers):
        x = x + mixer(F.rms_norm(x, (WIDTH,), others[f"layers.{i}.norm1.weight"], 1e-6))
    hidden = F.rms_norm(x, (WIDTH,), others["norm.weight"], 1e-6)
    loss = F.cross_entropy((hidden @ others["embedding.weight"].T).flatten(0, 1), targets.flatten())
    loss.backward()

    want = run.load().run({"tokens": ids, "targets": targets}, gradients=True)
    assert (hidden - want["hidden"]).abs().max() < 1e-4 * want["hidden"].abs().max()
    seen = 0
    for i, mixer in enumerate(mixers):
        for name, p in mixer.named_parameters():
            expected = want["grad." + (name if name.startswith("shared.") else f"layers.{i}.mixer.{name}")]
            assert (p.grad - expected).abs().max() <= 1e-4 * max(float(expected.abs().max()), 1e-3), (PRESETS[i], name)
            seen += 1
    fixed = sum(len(list(mixer.buffers())) for mixer in mixers)  # of Performer, RFF and RetNet
    assert seen + fixed == sum(name.startswith("grad.") and name.removeprefix("grad.") not in others for name in want)

    # And back: other numbers in the modules, in a folder of the engine's.
    with torch.no_grad():
        for p in mixers.parameters():
            p.mul_(1.1)
    run.load().save(tmp_path / "model")
    changed = dict(weights)
    for i, mixer in enumerate(mixers):
        changed |= mixer.layer_weights(f"layers.{i}.mixer")
    assert changed.keys() == weights.keys()
    isomer.torch.save_weights(tmp_path / "model" / "model.safetensors", changed)
    x = others["embedding.weight"][ids]
    with torch.no_grad():
        for i, mixer in enumerate(mixers):
            x = x + mixer(F.rms_norm(x, (WIDTH,), others[f"layers.{i}.norm1.weight"], 1e-6))
        hidden = F.rms_norm(x, (WIDTH,), others["norm.weight"], 1e-6)
    got = isomer.load(tmp_path / "model").run({"tokens": ids})["hidden"]
    assert (hidden - got).abs().max() < 1e-4 * got.abs().max()


@pytest.mark.parametrize("preset", PRESETS)
def test_streams(preset, tmp_path):
    mixer, x = shaken(Mixer(preset, WIDTH, seed=3)), tokens(T=9)
    with torch.no_grad():
        want = mixer(x)
    close = lambda a, b: torch.allclose(a, b, atol=2e-5 * float(want.abs().max()) + 1e-6, rtol=1e-4)
    state = mixer.start(2)
    assert close(state.prefill(x[:, :5]), want[:, :5])
    fork = state.copy()
    fork.save(tmp_path / "state")
    again = mixer.load_state(tmp_path / "state")
    for t in range(5, 9):
        assert close(state.step(x[:, t]), want[:, t])
    assert state.positions == [9, 9] and fork.positions == [5, 5] and again.positions == [5, 5] and state.bytes > 0
    rest = fork.prefill(x[:, 5:])
    assert close(rest, want[:, 5:]) and torch.equal(again.prefill(x[:, 5:]), rest)


def test_learns():
    torch.manual_seed(1)
    mixer, x = Mixer("gla", WIDTH, heads=2), tokens(4, 12)
    goal = x.roll(1, 1)
    optimiser = torch.optim.Adam(mixer.parameters(), 1e-2)
    losses = []
    for _ in range(60):
        loss = F.mse_loss(mixer(x), goal)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]


def test_copies_pickles_types_and_seeds():
    mixer, x = shaken(Mixer("mamba", WIDTH, seed=3)), tokens()
    want = mixer(x)
    assert torch.equal(copy.deepcopy(mixer)(x), want)
    file = io.BytesIO()
    torch.save(mixer, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(x), want)
    double = copy.deepcopy(mixer).double()
    assert torch.allclose(double(x.double()).float(), want, atol=1e-5)
    half = copy.deepcopy(mixer).bfloat16()
    y = half(x.bfloat16())
    y.float().sum().backward()
    assert y.dtype == torch.bfloat16 and all(p.grad.dtype == torch.bfloat16 for p in half.parameters())
    a, b, c = (Mixer("gla", WIDTH, seed=seed).q.weight for seed in (5, 5, 6))
    assert torch.equal(a, b) and not torch.equal(a, c)
    other = copy.deepcopy(mixer)
    with torch.no_grad():
        other.o.weight.zero_()
    assert other(x).abs().max() == 0 and torch.equal(mixer(x), want)


def test_graphs_of_two_copies_do_not_mix():
    """Backward sees the numbers of its own forward, whoever ran between them."""
    mixer, x = shaken(Mixer("softmax", WIDTH, seed=3)), tokens()
    other = copy.deepcopy(mixer)
    other.__dict__["_engine"] = mixer._engine
    with torch.no_grad():
        other.v.weight.mul_(3.0)
    want = torch.autograd.grad(mixer(x).sum(), mixer.o.weight)[0]
    y = mixer(x)
    other(x).sum().backward()
    assert torch.equal(torch.autograd.grad(y.sum(), mixer.o.weight)[0], want)


def test_compile_graphs_and_memory():
    mixer, x = Mixer("gla", WIDTH, seed=3), tokens().requires_grad_()
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: mixer(x) * 2, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), mixer(x) * 2)
    want = torch.autograd.grad((mixer(x) * 2).sum(), x)[0]
    assert torch.equal(torch.autograd.grad(compiled(x).sum(), x)[0], want)
    y = mixer(x)
    first = torch.autograd.grad(y.sum(), x, retain_graph=True)[0]
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], first)
    before = _engine.mixer_tapes()
    y = mixer(x)
    assert _engine.mixer_tapes() == before + 1
    del y
    assert _engine.mixer_tapes() == before
    out, back = torch.func.vjp(lambda x: mixer(x), x.detach())
    assert torch.allclose(back(torch.ones_like(out))[0], first)


def test_threads_side_by_side():
    mixer, x = shaken(Mixer("deltanet", WIDTH, seed=3)), tokens()
    want = torch.autograd.grad(mixer(x).sum(), mixer.o.weight)[0]
    found = []
    work = lambda: found.append(all(torch.equal(torch.autograd.grad(mixer(x).sum(), mixer.o.weight)[0], want) for _ in range(20)))
    workers = [threading.Thread(target=work) for _ in range(3)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert found == [True] * 3
    assert torch.equal(mixer(x, threads=1), mixer(x, threads=2))


def test_packed():
    mixer, x = shaken(Mixer("mlstm", WIDTH, seed=3)), tokens(1, 9).requires_grad_()
    y = mixer(x, offsets=torch.tensor([0, 4, 9]))
    assert torch.allclose(y[:, 4:], mixer(x[:, 4:]), atol=1e-5)
    assert torch.autograd.grad(y[:, 4:].sum(), x)[0][:, :4].abs().max() == 0


def test_a_mixer_that_is_gone():
    """The graph keeps what backward needs, compiled or not."""
    x = tokens().requires_grad_()
    want = torch.autograd.grad(Mixer("gla", WIDTH, seed=3)(x).sum(), x)[0]
    made = Mixer("gla", WIDTH, seed=3)
    y = made(x)
    del made
    gc.collect()
    assert torch.equal(torch.autograd.grad(y.sum(), x, retain_graph=True)[0], want)
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], want)
    torch._dynamo.reset()
    made = Mixer("gla", WIDTH, seed=3)
    y = torch.compile(made, backend="aot_eager")(x)
    del made
    torch._dynamo.reset()
    gc.collect()
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], want)


def test_checkpointing():
    from torch.utils.checkpoint import checkpoint

    mixer, x = Mixer("mlstm", WIDTH, seed=3), tokens().requires_grad_()
    want = torch.autograd.grad(mixer(x).square().sum(), [x, *mixer.parameters()])
    got = torch.autograd.grad(checkpoint(mixer, x, use_reentrant=False).square().sum(), [x, *mixer.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(got, want))


def test_states_are_copied_and_pickled():
    mixer, x = shaken(Mixer("gla", WIDTH, seed=3)), tokens()
    state = mixer.start(2)
    state.prefill(x)
    assert "(q): (weight=[" in repr(mixer) and "_Group" not in repr(mixer)
    assert repr(state) == f"<isomer.torch.MixerState of gla: 2 sequences after 7 tokens, {state.bytes} bytes>"
    others = [copy.copy(state), copy.deepcopy(state), pickle.loads(pickle.dumps(state))]
    want = state.step(x[:, 0])
    for other in others:
        assert torch.equal(other.step(x[:, 0]), want)


def test_views_whose_sign_is_turned():
    mixer, x = shaken(Mixer("gla", WIDTH, seed=3)), tokens()
    turned = torch._neg_view(x)
    assert torch.equal(mixer(turned), mixer(-x)) and torch.equal(mixer.start(2).prefill(turned), mixer.start(2).prefill(-x))


@pytest.mark.parametrize("call, text", [
    (lambda: Mixer("gla", 16)(torch.ones(2, 3, 16, device="meta")), "expected x in the memory of the CPU, got meta"),
    (lambda: Mixer("gla", 16)(torch.ones(2, 3, 16, device="meta", requires_grad=True)), "expected x in the memory of the CPU, got meta"),
    (lambda: Mixer("gla", 16).to("meta")(torch.ones(2, 3, 16)), "expected a weight in the memory of the CPU, got meta"),
    (lambda: Mixer("gla", 16)(torch.ones(1, 3, 16), offsets=torch.tensor([0, 3], device="meta")), "expected offsets in the memory of the CPU"),
    (lambda: Mixer("gla", 16)(torch.ones(1, 3, 16), offsets=torch.tensor([False, True])), "expected offsets of type"),
    (lambda: Mixer("gla", 16)(torch.ones(1, 3, 16), offsets=torch.tensor([0.0, 3.0])), "expected offsets"),
    (lambda: Mixer("gla", 16)(torch.ones(1, 3, 16), offsets=[0, 3]), "expected offsets to be a tensor of PyTorch"),
    (lambda: Mixer("gla", 16)(torch.ones(2, 3, 16, dtype=torch.int64)), "expected x of type float32"),
    (lambda: Mixer("gla", 16)(torch.ones(2, 3, 16).numpy()), "expected x to be a tensor of PyTorch, got ndarray"),
    (lambda: Mixer("gla", 16).start(2).prefill([[1.0]]), "expected x to be a tensor of PyTorch, got list"),
    (lambda: Mixer("gla", 16).start(2).prefill(torch.ones(2, 3, 16, device="meta")), "expected x in the memory of the CPU"),
    (lambda: Mixer("gla", 16, seed=-1), "mixer: seed: expected a whole number"),
    (lambda: Mixer("gla", 16, heads=torch.ones(2)), "gla: expected heads as a number"),
    (lambda: Mixer("gla", 16)(torch.ones(2, 3, 16), threads="2"), "threads: expected a whole number"),
    (lambda: Mixer("glaa"), "did you mean gla"),
    (lambda: Mixer(None), "expected the name of a preset, got None"),
    (lambda: Mixer("gla", 16.0), "mixer: width: expected a whole number"),
    (lambda: Mixer("gla", head=3), "did you mean heads"),
    (lambda: Mixer("gla", 16, heads=3), "expected"),
    (lambda: Mixer("gla", 16)(torch.ones(2, 3, 15)), r"expected x \[B, T, 16\], got \[2, 3, 15\]"),
    (lambda: Mixer("gla", 16)(torch.ones(2, 16)), r"expected x \[B, T, 16\]"),
    (lambda: Mixer("softmax", 16, causal=False).start(1), "causal"),
    (lambda: Mixer("gla", 16).start(2).step(torch.ones(2, 1, 16)), r"x \[B, width\]"),
    (lambda: Mixer("gla", 16).start(2).prefill(torch.ones(3, 1, 16)), "expected 2 sequences as in the state, got 3"),
    (lambda: Mixer("gla", 16).load_state("/nowhere"), "/nowhere"),
    (lambda: isomer.torch.load_weights("/nowhere"), "/nowhere"),
])
def test_refusals(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_weights_that_are_missing():
    with pytest.raises(RuntimeError, match="Missing key"):
        Mixer("gla", 16).load_layer({}, "layers.0.mixer")
