"""accelerate() on tiny random models: logits, generated tokens, caches and all gradients are those of before; restore() undoes it."""
import copy
import pickle

import models
import pytest
import torch

import isomer.torch
from isomer.torch import accelerate, restore

NAMES = [name for name in models.CONFIGS if name not in models.MASKED]
IDS = torch.randint(3, 64, (2, 37), generator=torch.Generator().manual_seed(1))
WHAT = {"qwen3_next": "gated delta rule", "qwen3_5": "gated delta rule", "olmo_hybrid": "gated delta rule", "kimi_linear": "Kimi delta attention",
        "mamba": "selective scan", "falcon_mamba": "selective scan", "mamba2": "state-space duality", "falcon_h1": "state-space duality",
        "bamba": "state-space duality", "zamba2": "state-space duality", "recurrent_gemma": "RG-LRU", "xlstm": "mLSTM",
        "minimax": "lightning attention", "llama": "attention", "mistral": "attention", "gemma3": "attention"}


@pytest.fixture(params=NAMES)
def model(request):
    made = models.build(request.param)
    made.name = request.param
    return made


def gradients(model):
    model.train()
    loss = model(IDS, labels=IDS, use_cache=False).loss
    model.zero_grad()
    loss.backward()
    model.eval()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def generated(model):
    return model.generate(IDS[:, :9], max_new_tokens=8, do_sample=False, pad_token_id=0, eos_token_id=None)


@torch.no_grad()
def streamed(model):
    """Logits of a prompt and of the tokens behind it, one at a time through the cache; models name it in two ways."""
    made = model(IDS[:, :20], use_cache=True)
    logits = [made.logits]
    for t in range(20, 24):
        key = "past_key_values" if getattr(made, "past_key_values", None) is not None else "cache_params"
        more = {} if getattr(made, key, None) is None else {key: getattr(made, key)}
        made = model(IDS[:, t : t + 1], use_cache=True, position_ids=torch.full((2, 1), t), **more)
        logits.append(made.logits)
    return torch.cat(logits, 1)


def close(got, want, limit=1e-4):
    return got.shape == want.shape and (got - want).abs().max() <= limit * max(1.0, float(want.abs().max()))


def test_before_and_after(model):
    with torch.no_grad():
        logits, tokens = model(IDS).logits, generated(model)
    stream, grads = streamed(model), gradients(model)

    report = accelerate(model, products=True)
    assert WHAT[model.name] in str(report) and "product with weights" in str(report) and "Linear" not in report.left
    with torch.no_grad():
        after = model(IDS).logits
        assert close(after, logits) and not torch.equal(after, logits)
        assert torch.equal(generated(model), tokens)
    assert close(streamed(model), stream)
    found = gradients(model)
    assert found.keys() == grads.keys()
    for name, want in grads.items():
        assert (found[name] - want).abs().max() <= 1e-4 * max(1e-2, float(want.abs().max())), name

    restore(model)
    with torch.no_grad():
        assert torch.equal(model(IDS).logits, logits)
    assert not any("forward" in vars(module) for module in model.modules())


def test_padding(model):
    """Of xLSTM, which does not look at masks, that they change nothing."""
    mask = torch.ones_like(IDS)
    mask[0, :5] = 0
    with torch.no_grad():
        want = model(IDS, attention_mask=mask).logits
        accelerate(model)
        got = model(IDS, attention_mask=mask).logits
    assert close(got[1], want[1]) and close(got[0, 5:], want[0, 5:])


PACKED = torch.cat([torch.arange(20), torch.arange(17)])[None].expand(2, -1)
LONG = torch.zeros(2, 1, 37, 37).masked_fill(~torch.ones(37, 37).tril(3).bool(), -1e30)  # three tokens ahead, which no option says


@pytest.mark.parametrize("name, more", [
    ("llama", {"position_ids": PACKED, "use_cache": False}), ("mistral", {"position_ids": PACKED, "use_cache": False}),
    ("gemma3", {"position_ids": PACKED, "use_cache": False}), ("llama", {"attention_mask": LONG}), ("gpt_oss", {}), ("llama4", {}),
    ("gpt_oss", {"attention_mask": torch.arange(37).ge(torch.tensor([[5], [0]])).long()}),
])
def test_other_masks(name, more):
    """Packed sequences, masks of the caller's own, chunks, and sinks are computed as before."""
    model = models.build(name)
    with torch.no_grad():
        want = model(IDS, **more).logits
    grads = gradients(model)
    assert "attention" in str(accelerate(model))
    with torch.no_grad():
        assert close(model(IDS, **more).logits[:, 5:], want[:, 5:])
    for key, grad in gradients(model).items():
        assert (grad - grads[key]).abs().max() <= 1e-4 * max(1e-2, float(grads[key].abs().max())), key


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma3"])
def test_static_caches(name):
    """Keys behind the last token are not there yet."""
    model = models.build(name)
    run = lambda: model.generate(IDS[:, :9], max_new_tokens=8, do_sample=False, pad_token_id=0, eos_token_id=None,
                                 cache_implementation="static", disable_compile=True)
    want = run()
    accelerate(model)
    assert torch.equal(run(), want)


def test_encoders_and_decoders():
    """Attention in both directions, and on another text."""
    for name, call in (("bert", lambda m: m(IDS).logits), ("modernbert", lambda m: m(IDS).logits),
                       ("bart", lambda m: m(input_ids=IDS, decoder_input_ids=IDS[:, :11]).logits)):
        model = models.build(name)
        with torch.no_grad():
            want = call(model)
            assert "attention" in str(accelerate(model))
            assert close(call(model), want), name


def test_one_model_at_a_time():
    one, other = models.build("mamba"), models.build("mamba")
    accelerate(one)
    assert "forward" in vars(one.backbone.layers[0].mixer) and "forward" not in vars(other.backbone.layers[0].mixer)
    fork = copy.deepcopy(one)
    with torch.no_grad():
        for p in fork.parameters():
            p.mul_(1.01)
        assert not torch.equal(fork(IDS).logits, one(IDS).logits)
    accelerate(one)
    restore(one)
    restore(one)
    with torch.no_grad():
        assert torch.equal(one(IDS).logits, other(IDS).logits)


def test_prompts_in_pieces():
    """xLSTM takes long prompts in pieces, by its cache."""
    model = models.build("xlstm", max_inference_chunksize=16)
    with torch.no_grad():
        want, tokens = model(IDS).logits, generated(model)
        accelerate(model)
        assert close(model(IDS).logits, want) and torch.equal(generated(model), tokens)


@pytest.mark.parametrize("name", ["qwen3_5", "mamba", "recurrent_gemma", "xlstm", "minimax", "llama"])
def test_pickled(name):
    """A pickle has the model as it was before, and what is loaded can be accelerated."""
    model = models.build(name)
    accelerate(model)
    again = pickle.loads(pickle.dumps(model))
    with torch.no_grad():
        want = model(IDS).logits
        assert close(again(IDS).logits, want)
        accelerate(again)
        assert torch.equal(again(IDS).logits, want)
    restore(again)
    assert not any("forward" in vars(module) for module in again.modules())


@pytest.mark.parametrize("name", ["qwen3_5", "mamba", "llama"])
def test_checkpointing(name):
    model = models.build(name)
    want = gradients(model)
    accelerate(model)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    found = gradients(model)
    assert found.keys() == want.keys()
    for key, grad in want.items():
        assert (found[key] - grad).abs().max() <= 1e-4 * max(1e-2, float(grad.abs().max())), key


def test_attention_by_name():
    plain, ours = models.build("llama"), models.build("llama", attn_implementation="isomer")
    with torch.no_grad():
        assert ours.config._attn_implementation == "isomer"
        assert close(ours(IDS).logits, plain(IDS).logits)
    half = models.build("llama", attn_implementation="isomer").bfloat16()
    with torch.no_grad():
        assert half(IDS).logits.dtype == torch.bfloat16


def test_training_with_dropout_is_pytorchs():
    model = models.build("llama", attention_dropout=0.5)
    accelerate(model)
    model.train()
    torch.manual_seed(3)
    first = model(IDS).logits
    assert not torch.equal(model(IDS).logits, first)


def test_refusals():
    with pytest.raises(ValueError, match="expected a model of PyTorch, got int"):
        accelerate(3)
    q = torch.zeros(1, 2, 3, 4)
    with pytest.raises(ValueError, match="expected attention without softcap"):
        from isomer.torch._attention import attention_forward

        attention_forward(torch.nn.Module(), q, q, q, None, softcap=30.0)
    report = accelerate(torch.nn.Linear(2, 2), products=False)
    assert str(report) == "replaced nothing\nleft 1 x Linear"
    assert "<pre>" in report._repr_html_()


@torch.no_grad()
def test_products_are_ours_where_they_are_worth_it():
    model = torch.nn.Linear(48, 33)
    x = torch.randn(5, 20, 48)
    narrow = model.bfloat16()(x.bfloat16())
    want = model.float()(x)
    assert str(accelerate(model, products=True)) == "replaced 1 x product with weights\nleft nothing"
    calls = []
    hook = isomer.torch.linear
    isomer.torch.linear = lambda *x: calls.append(1) or hook(*x)
    try:
        assert close(model(x), want) and len(calls) == 1
        assert torch.equal(model(x[:1]), torch.nn.functional.linear(x[:1], model.weight, model.bias)) and len(calls) == 1, "few rows"
        with torch.autocast("cpu", torch.bfloat16):
            assert model(x).dtype == torch.bfloat16 and len(calls) == 1
        assert torch.equal(model.bfloat16()(x.bfloat16()), narrow) and len(calls) == 1, "other types"
    finally:
        isomer.torch.linear = hook


def test_keywords_of_kernels_are_not_swallowed():
    """What a modeling file passes on reaches our function, which computes or refuses it."""
    from isomer.torch._transformers import _chunk_scan, _conv, _gated_delta, _selective_update

    with pytest.raises(ValueError, match="expected no seq_idx"):
        _conv(torch.randn(1, 3, 5), torch.randn(3, 4), seq_idx=torch.zeros(1, 5))
    with pytest.raises(ValueError, match="expected no state_batch_indices"):
        _selective_update(*[torch.randn(1, 3, 4)] * 6, state_batch_indices=torch.zeros(1))
    x, dt, A, b = torch.randn(1, 5, 2, 3), torch.rand(1, 5, 2), -torch.rand(2), torch.randn(1, 5, 1, 4)
    z = torch.randn(1, 5, 2, 3)
    got = _chunk_scan(x, dt, A, b, b, 16, z=z, use_cache=True)
    assert torch.allclose(got, _chunk_scan(x, dt, A, b, b, 16) * torch.nn.functional.silu(z), atol=1e-6)
    beta = torch.rand(1, 5, 2)
    assert torch.allclose(_gated_delta(x, x, x, -dt, beta, scale=1.0)[0], _gated_delta(x, x, x, -dt, beta)[0] * 3**0.5, atol=1e-5)


def test_capped_logits_are_left():
    import transformers

    model = transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**models.BASE, query_pre_attn_scalar=8)).eval()
    report = accelerate(model)
    assert "capped by tanh" in str(report) and model.config._attn_implementation != "isomer"
