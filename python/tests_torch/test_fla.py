"""The functions of isomer.fla beside the plain implementations that flash-linear-attention ships, forward and backward."""
import inspect
import warnings

import pytest
import torch
import torch.nn.functional as F

warnings.filterwarnings("ignore", message="Triton is not supported")
import fla.ops  # noqa: E402
from fla.ops.attn.naive import naive_parallel_attn  # noqa: E402
from fla.ops.based.naive import naive_parallel_based  # noqa: E402
from fla.ops.comba.naive import naive_recurrent_comba  # noqa: E402
from fla.ops.delta_rule.naive import delta_rule_recurrence  # noqa: E402
from fla.ops.forgetting_attn.naive import naive_forgetting_attn  # noqa: E402
from fla.ops.gated_delta_product.naive import naive_recurrent_gated_delta_product  # noqa: E402
from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule  # noqa: E402
from fla.ops.gdn2.naive import naive_recurrent_gdn2  # noqa: E402
from fla.ops.generalized_delta_rule.dplr.naive import dplr_recurrence  # noqa: E402
from fla.ops.generalized_delta_rule.iplr.naive import iplr_recurrence  # noqa: E402
from fla.ops.gla.naive import naive_recurrent_gla  # noqa: E402
from fla.ops.hgrn.naive import naive_recurrent_hgrn  # noqa: E402
from fla.ops.kda.naive import naive_recurrent_kda  # noqa: E402
from fla.ops.linear_attn.naive import naive_recurrent_linear_attn  # noqa: E402
from fla.ops.retention.naive import naive_retention  # noqa: E402
from fla.ops.rwkv6.recurrent_naive import naive_recurrent_rwkv6  # noqa: E402
from fla.ops.simple_gla.naive import naive_recurrent_simple_gla  # noqa: E402

import isomer.fla as ours  # noqa: E402

B, H, K, V = 2, 3, 16, 12
GRID = [(T, state, gate) for T, state, gate in [(1, True, 1.0), (15, False, 1.0), (63, True, 0.1), (100, True, 1.0), (64, False, 30.0)]]


def swapped(oracle):
    """An oracle on [B, H, T, ...]."""

    def call(*tensors, **options):
        o, state = oracle(*[x.transpose(1, 2) if x.dim() > 2 else x for x in tensors], **options)
        return o.transpose(1, 2), state

    return call


class Problem:
    def __init__(self, T, gate, kind=torch.float32, seed=3, batch=B):
        self.generator = torch.Generator().manual_seed(seed + T)
        self.T, self.gate, self.kind, self.batch = T, gate, kind, batch

    def normal(self, *shape):
        return torch.randn(*shape, generator=self.generator).to(self.kind)

    def token(self, *shape):
        return self.normal(self.batch, self.T, *shape)

    def keys(self):
        return F.normalize(self.token(H, K).float(), dim=-1).to(self.kind)

    def qkv(self):
        return [self.token(H, K), self.keys(), self.token(H, V)]

    def decay(self, *shape):
        return F.logsigmoid(self.token(*shape).float()).mul(self.gate).to(self.kind)

    def unit(self, *shape):
        return self.token(*shape).float().sigmoid().to(self.kind)


def pair(p):
    a = -F.normalize(p.token(H, K).float(), dim=-1)
    return [a, -a * p.unit(H, 1)]


def delta_of_values(q, k, v, beta, initial_state=None, output_final_state=False):
    """beta [B, T, H, V], as the recurrent kernel has it."""
    q, k, v, beta = (x.float() for x in (q, k, v, beta))
    state = q.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3]) if initial_state is None else initial_state
    o = []
    for t in range(q.shape[1]):
        error = beta[:, t] * (v[:, t] - (state * k[:, t, :, :, None]).sum(-2))
        state = state + k[:, t, :, :, None] * error[:, :, None]
        o.append((state * q[:, t, :, :, None]).sum(-2) * q.shape[3] ** -0.5)
    return torch.stack(o, 1), state if output_final_state else None


# name -> (ours, the plain one, tensors); all take initial_state and output_final_state.
CASES = {
    "gla": (ours.chunk_gla, naive_recurrent_gla, lambda p: [*p.qkv(), p.decay(H, K)]),
    "recurrent_gla": (ours.fused_recurrent_gla, naive_recurrent_gla, lambda p: [*p.qkv(), p.decay(H, K)]),
    "recurrent_simple_gla": (ours.fused_recurrent_simple_gla, naive_recurrent_simple_gla, lambda p: [*p.qkv(), p.decay(H)]),
    "recurrent_linear_attn": (ours.fused_recurrent_linear_attn, naive_recurrent_linear_attn, lambda p: p.qkv()),
    "recurrent_delta_rule": (ours.fused_recurrent_delta_rule, swapped(delta_rule_recurrence), lambda p: [*p.qkv(), p.unit(H)]),
    "delta_rule_of_values": (ours.fused_recurrent_delta_rule, delta_of_values, lambda p: [*p.qkv(), p.unit(H, V)]),
    "recurrent_kda": (ours.fused_recurrent_kda, naive_recurrent_kda, lambda p: [*p.qkv(), p.decay(H, K), p.unit(H)]),
    "recurrent_rwkv6": (ours.fused_recurrent_rwkv6, swapped(naive_recurrent_rwkv6), lambda p: [*p.qkv(), p.decay(H, K), p.normal(H, K)]),
    "recurrent_dplr": (ours.fused_recurrent_dplr_delta_rule, swapped(dplr_recurrence), lambda p: [*p.qkv(), *pair(p), p.decay(H, K)]),
    "recurrent_iplr": (ours.fused_recurrent_iplr_delta_rule, swapped(iplr_recurrence), lambda p: [*p.qkv(), *pair(p)]),
    "simple_gla": (ours.chunk_simple_gla, naive_recurrent_simple_gla, lambda p: [*p.qkv(), p.decay(H)]),
    "linear_attn": (lambda *x, **o: ours.chunk_linear_attn(*x, normalize=False, **o), naive_recurrent_linear_attn, lambda p: p.qkv()),
    "delta_rule": (ours.chunk_delta_rule, swapped(delta_rule_recurrence), lambda p: [*p.qkv(), p.unit(H)]),
    "gated_delta_rule": (lambda q, k, v, beta, g, **o: ours.chunk_gated_delta_rule(q, k, v, g, beta, **o),
                         naive_recurrent_gated_delta_rule, lambda p: [*p.qkv(), p.unit(H), p.decay(H)]),
    "recurrent_gated_delta_rule": (lambda q, k, v, beta, g, **o: ours.fused_recurrent_gated_delta_rule(q, k, v, g=g, beta=beta, **o),
                                   naive_recurrent_gated_delta_rule, lambda p: [*p.qkv(), p.unit(H), p.decay(H)]),
    "kda": (ours.chunk_kda, naive_recurrent_kda, lambda p: [*p.qkv(), p.decay(H, K), p.unit(H)]),
    "rwkv6": (ours.chunk_rwkv6, swapped(naive_recurrent_rwkv6), lambda p: [*p.qkv(), p.decay(H, K), p.normal(H, K)]),
    "dplr": (lambda q, k, v, a, b, gk, **o: ours.chunk_dplr_delta_rule(q, k, v, a, b, gk, **o), swapped(dplr_recurrence),
             lambda p: [*p.qkv(), *pair(p), p.decay(H, K)]),
    "iplr": (ours.chunk_iplr_delta_rule, swapped(iplr_recurrence), lambda p: [*p.qkv(), *pair(p)]),
    "comba": (lambda q, k, v, p, beta, g, **o: ours.chunk_comba(q, k, v, p, g, beta, **o), naive_recurrent_comba,
              lambda p: [*p.qkv(), p.keys(), p.unit(H), p.decay(H)]),
    "recurrent_comba": (lambda q, k, v, p, beta, g, **o: ours.fused_recurrent_comba(q, k, p, v, g, beta, **o), naive_recurrent_comba,
                        lambda p: [*p.qkv(), p.keys(), p.unit(H), p.decay(H)]),
    "gdn2": (ours.chunk_gdn2, naive_recurrent_gdn2, lambda p: [*p.qkv(), p.decay(H, K), p.unit(H, K), p.unit(H, V)]),
    "recurrent_gdn2": (ours.fused_recurrent_gdn2, naive_recurrent_gdn2, lambda p: [*p.qkv(), p.decay(H, K), p.unit(H, K), p.unit(H, V)]),
    "rwkv7": (lambda q, k, v, a, b, gk, **o: ours.chunk_rwkv7(q, gk, k, v, a, b, scale=K**-0.5, **o), swapped(dplr_recurrence),
              lambda p: [*p.qkv(), *pair(p), p.decay(H, K)]),
}


def close(got, want, limit=2e-5):
    assert got.shape == want.shape and got.dtype == want.dtype
    assert (got.float() - want.float()).abs().max() <= limit * max(1.0, float(want.detach().abs().max()))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("T, state, gate", GRID)
def test_against_the_plain_one(name, T, state, gate):
    function, oracle, make = CASES[name]
    p = Problem(T, gate)
    tensors = make(p)
    initial = p.normal(B, H, K, V) if state else None
    to_o, to_state = p.token(H, V), p.normal(B, H, K, V)

    def run(call):
        inputs = [x.clone().requires_grad_() for x in tensors]
        start = None if initial is None else initial.clone().requires_grad_()
        o, final = call(*inputs, initial_state=start, output_final_state=True)
        leaves = inputs + ([] if start is None else [start])
        return o, final, torch.autograd.grad((o * to_o).sum() + (final * to_state).sum(), leaves)

    (o, final, grads), (want, want_final, want_grads) = run(function), run(oracle)
    close(o, want), close(final, want_final)
    for got, expected in zip(grads, want_grads):
        close(got, expected, 1e-4)
    assert function(*tensors)[1] is None


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_half_precision(name, kind):
    function, oracle, make = CASES[name]
    p = Problem(40, 1.0, kind)
    tensors = [x.to(kind) for x in make(p)]
    inputs, floats = [x.clone().requires_grad_() for x in tensors], [x.float().requires_grad_() for x in tensors]
    o, final = function(*inputs, output_final_state=True)
    want, want_final = oracle(*floats, output_final_state=True)
    assert o.dtype == kind and final.dtype == torch.float32
    close(o, want.to(kind), 1e-2), close(final, want_final)
    to_o = p.token(H, V).float()
    grads = torch.autograd.grad((o.float() * to_o).sum() + final.sum(), inputs)
    want_grads = torch.autograd.grad((want * to_o).sum() + want_final.sum(), floats)
    for got, expected in zip(grads, want_grads):
        close(got, expected.to(kind), 2e-2)


@pytest.mark.parametrize("name", CASES)
def test_packed_sequences(name):
    function, oracle, make = CASES[name]
    p = Problem(50, 1.0, batch=1)
    tensors, edges = make(p), [0, 1, 18, 50]
    initial = p.normal(3, H, K, V)
    to_o, to_state = p.token(H, V), p.normal(3, H, K, V)
    leaves = [x.clone().requires_grad_() for x in (*tensors, initial)]
    o, final = function(*leaves[:-1], initial_state=leaves[-1], output_final_state=True, cu_seqlens=torch.tensor(edges))
    grads = torch.autograd.grad((o * to_o).sum() + (final * to_state).sum(), leaves)
    theirs = [x.clone().requires_grad_() for x in (*tensors, initial)]
    loss = 0
    for i, (begin, end) in enumerate(zip(edges, edges[1:])):
        own = [x[:, begin:end] if x.dim() > 2 else x for x in theirs[:-1]]
        want, want_final = oracle(*own, initial_state=theirs[-1][i : i + 1], output_final_state=True)
        close(o[:, begin:end], want), close(final[i : i + 1], want_final)
        loss = loss + (want * to_o[:, begin:end]).sum() + (want_final * to_state[i : i + 1]).sum()
    for got, expected in zip(grads, torch.autograd.grad(loss, theirs)):
        close(got, expected, 1e-4)


@pytest.mark.parametrize("name", ["gated_delta_rule", "recurrent_gated_delta_rule", "kda", "gdn2"])
def test_grouped_values(name):
    """More heads of values, gates and beta than of q and k."""
    function, oracle, _ = CASES[name]
    p = Problem(40, 1.0)
    q, k, v = p.token(2, K), F.normalize(p.token(2, K), dim=-1), p.token(6, V)
    rest = {"kda": [p.decay(6, K), p.unit(6)], "gdn2": [p.decay(6, K), p.unit(6, K), p.unit(6, V)]}.get(name, [p.unit(6), p.decay(6)])
    leaves, theirs = ([x.clone().requires_grad_() for x in (q, k, v, *rest)] for _ in range(2))
    o, final = function(*leaves, output_final_state=True)
    want, want_final = oracle(*[x.repeat_interleave(3, 2) for x in theirs[:2]], *theirs[2:], output_final_state=True)
    close(o, want), close(final, want_final)
    for got, expected in zip(torch.autograd.grad(o.square().sum(), leaves), torch.autograd.grad(want.square().sum(), theirs)):
        close(got, expected, 1e-4)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_retention_and_lightning(kind):
    tensors = Problem(70, 1.0).qkv()
    plain = lambda *x: naive_retention(*[y.transpose(1, 2) for y in x]).transpose(1, 2)
    for function in (ours.chunk_retention, ours.fused_recurrent_retention, ours.parallel_retention):
        both(lambda *x: function(*x)[0], plain, tensors, kind)
    gamma = -(8 / H * (1 - 2 / 7)) * torch.arange(H)
    for function in (ours.chunk_lightning_attn, ours.fused_recurrent_lightning_attn):
        both(lambda *x: function(*x, 2, 7)[0], lambda *x: naive_recurrent_simple_gla(*x, gamma.expand(B, 70, H))[0], tensors, kind)


def test_normalised_linear_attention():
    q, k, v = [x.abs() for x in Problem(33, 1.0).qkv()]
    o, (state, z) = ours.chunk_linear_attn(q, k, v, output_final_state=True)
    want, (want_state, want_z) = naive_recurrent_linear_attn(q, k, v, normalize=True, output_final_state=True)
    close(o, want), close(state, want_state), close(z, want_z)
    edges = [0, 5, 5, 33]
    leaves, theirs = ([x[:1].clone().requires_grad_() for x in (q, k, v)] for _ in range(2))
    starts = (Problem(3, 1.0).normal(3, H, K, V), Problem(4, 1.0).normal(3, 1, H, K).abs())
    o, (state_of, z_of) = ours.chunk_linear_attn(*leaves, initial_state=starts, output_final_state=True, cu_seqlens=torch.tensor(edges))
    close(state_of[1], starts[0][1]), close(z_of[1], starts[1][1])  # nothing came
    loss = 0
    for i in (0, 2):
        own, start = [x[:, edges[i] : edges[i + 1]] for x in theirs], (starts[0][i : i + 1], starts[1][i : i + 1])
        want, (want_state, want_z) = naive_recurrent_linear_attn(*own, initial_state=start, normalize=True, output_final_state=True)
        close(o[:, edges[i] : edges[i + 1]], want), close(state_of[i : i + 1], want_state), close(z_of[i : i + 1], want_z)
        loss = loss + want.square().sum()
    for got, expected in zip(torch.autograd.grad(o.square().sum(), leaves), torch.autograd.grad(loss, theirs)):
        close(got, expected, 1e-4)
    double = [x.double() for x in (q, k, v)]
    exact = torch.einsum("bihk,bjhk->bhij", double[0], double[1]).tril()
    exact = torch.einsum("bhij,bjhv->bihv", exact / exact.sum(-1, keepdim=True), double[2])
    assert (ours.chunk_linear_attn(*double)[0] - exact).abs().max() < 1e-8
    more = Problem(9, 1.0).qkv()
    more = [x.abs() for x in more]
    close(ours.chunk_linear_attn(*more, initial_state=(state, z))[0],
          naive_recurrent_linear_attn(*more, initial_state=(state, z), normalize=True)[0])


def both(function, oracle, tensors, kind=torch.float32):
    """Outputs and gradients of ours and of the plain one, which computes in float32."""
    ours_, theirs = ([x.to(kind).to(of).requires_grad_() for x in tensors] for of in (kind, torch.float32))
    o, want = function(*ours_), oracle(*theirs)
    assert o.dtype == kind
    close(o, want.to(kind), 2e-5 if kind == torch.float32 else 1e-2)
    weights = torch.randn(o.shape, generator=torch.Generator().manual_seed(5))
    for got, expected in zip(torch.autograd.grad((o.float() * weights).sum(), ours_), torch.autograd.grad((want * weights).sum(), theirs)):
        close(got, expected.to(kind), 1e-4 if kind == torch.float32 else 2e-2)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("T, window", [(1, None), (41, None), (100, 5), (17, 64)])
def test_attention(T, window, kind):
    p = Problem(T, 1.0)
    q, k, v, g = p.token(4, K), p.token(2, K), p.token(2, V), p.decay(4)
    plain = lambda *x, **gate: naive_parallel_attn(*x, window_size=window, **gate)[0]
    both(lambda *x: ours.parallel_attn(*x, window_size=window), plain, [q, k, v], kind)
    both(lambda *x: ours.parallel_attn(*x, window_size=window), lambda q, k, v, g: plain(q, k, v, g=g), [q, k, v, g], kind)
    both(lambda *x: ours.parallel_forgetting_attn(*x, window_size=window), lambda *x: naive_forgetting_attn(*x, window_size=window),
         [q, k, v, g], kind)


def test_packed_attention():
    p, edges = Problem(60, 1.0, batch=1), [0, 1, 18, 60]
    parts = lambda function: lambda *x: torch.cat([function(*[y[:, a:b] for y in x]) for a, b in zip(edges, edges[1:])], 1)
    tensors = [p.token(4, K), p.token(2, K), p.token(2, V), p.decay(4)]
    both(lambda *x: ours.parallel_forgetting_attn(*x, cu_seqlens=torch.tensor(edges)), parts(naive_forgetting_attn), tensors)
    both(lambda *x: ours.parallel_attn(*x, window_size=7, cu_seqlens=torch.tensor(edges)),
         parts(lambda *x: naive_parallel_attn(*x, window_size=7)[0]), tensors[:3])


@pytest.mark.parametrize("norm", [True, False])
def test_based(norm):
    """Their functions take [B, T, H, D]; the plain one is what stands behind, on [B, H, T, D]."""
    plain = lambda *x: naive_parallel_based(*[y.transpose(1, 2) for y in x], use_norm=norm).transpose(1, 2)
    q, k, v = Problem(37, 1.0).qkv()
    for function in (ours.parallel_based, ours.fused_chunk_based):
        both(lambda *x: function(*x, use_norm=norm), plain, [q.abs(), k.abs(), v])


@pytest.mark.parametrize("edges", [None, [0, 1, 18, 50]])
def test_hgrn(edges):
    p = Problem(50, 1.0, batch=B if edges is None else 1)
    spans = list(zip(edges, edges[1:])) if edges else [(0, 50)]
    tensors = [p.token(20), p.decay(20), p.normal(len(spans) if edges else B, 20)]

    def plain(x, g, h):
        made = [naive_recurrent_hgrn(x[:, a:b], g[:, a:b], h[i : i + 1] if edges else h, True) for i, (a, b) in enumerate(spans)]
        return torch.cat([torch.cat([o for o, _ in made], 1), torch.cat([last for _, last in made]).view(x.shape[0], -1, 20)], 1)

    def law(x, g, h):
        o, last = ours.chunk_hgrn(x, g, h, True, **({} if edges is None else {"cu_seqlens": torch.tensor(edges)}))
        return torch.cat([o, last.view(x.shape[0], -1, 20)], 1)

    both(law, plain, tensors)


@pytest.mark.parametrize("gated", [True, False])
def test_delta_product(gated):
    """Several steps of the delta rule for each token."""
    p, n, edges = Problem(20, 1.0, batch=1), 3, torch.tensor([0, 1, 9, 20])
    more = Problem(20 * n, 1.0, batch=1)
    tensors = [p.token(H, K), more.keys(), more.token(H, V), more.unit(H), p.normal(3, H, K, V)] + [p.decay(H)] * gated

    def with_states(function):
        def call(q, k, v, beta, start, g=None):
            o, final = function(q, k, v, g, beta, start)
            return torch.cat([o.flatten(), final.flatten()])
        return call

    plain = with_states(lambda q, k, v, g, beta, start: naive_recurrent_gated_delta_product(
        q, k, v, g, beta, K**-0.5, edges, start, True, num_householder=n))
    both(with_states(lambda q, k, v, g, beta, start: ours.chunk_gated_delta_product(
        q, k, v, g, beta, n, initial_state=start, output_final_state=True, cu_seqlens=edges)), plain, tensors)


def test_other_layouts():
    p = Problem(30, 1.0)
    q, k, v, g = [*p.qkv(), p.decay(H, K)]
    initial = p.normal(B, H, K, V)
    want = ours.chunk_gla(q, k, v, g, initial_state=initial, output_final_state=True)
    got = ours.chunk_gla(q, k, v, g, initial_state=initial.transpose(-1, -2), output_final_state=True, state_v_first=True)
    assert torch.equal(got[0], want[0]) and torch.equal(got[1].transpose(-1, -2), want[1])
    back = ours.fused_recurrent_gla(q, k, v, g, reverse=True)[0]
    assert torch.equal(back, ours.chunk_gla(*[x.flip(1) for x in (q, k, v, g)])[0].flip(1))
    back = ours.fused_recurrent_gla(q, k, v, reverse=True)[0]
    assert torch.equal(back, ours.chunk_simple_gla(*[x.flip(1) for x in (q, k, v)])[0].flip(1))
    old = ours.fused_recurrent_gla(q, k, v, g, initial_state=initial.transpose(-1, -2), output_final_state=True, transpose_state_layout=True)
    assert torch.equal(old[0], want[0]) and torch.equal(old[1].transpose(-1, -2), want[1])
    close(ours.chunk_delta_rule(q, k, v, p.unit(H), use_qk_l2norm_in_kernel=True)[0].isfinite().float(), torch.ones(B, 30, H, V))


def test_gates_in_the_kernel():
    p = Problem(20, 1.0)
    q, k, v, raw, beta = [*p.qkv(), p.token(H, K), p.token(H)]
    A_log, bias = p.normal(H), p.normal(H * K)
    g = -A_log.exp()[:, None] * F.softplus(raw + bias.view(H, K))
    got = ours.chunk_kda(q, k, v, raw, beta, use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True, A_log=A_log, dt_bias=bias)[0]
    close(got, ours.chunk_kda(q, k, v, g, beta.sigmoid())[0])
    erase, write = p.unit(H, K), p.unit(H, V)
    got = ours.fused_recurrent_gdn2(q, k, v, raw, erase, write, A_log, bias, use_gate_in_kernel=True, use_qk_l2norm_in_kernel=True)[0]
    unit = lambda x: x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()
    close(got, ours.chunk_gdn2(unit(q), unit(k), v, g, erase, write)[0])
    got = ours.chunk_comba(q, k, v, None, g[..., 0], use_qk_l2norm_in_kernel=True)[0]
    close(got, ours.chunk_comba(unit(q), unit(k), v, unit(k), g[..., 0], torch.ones(B, 20, H))[0])
    raw = p.token(H)
    got = ours.fused_recurrent_gated_delta_rule(q, k, v, raw, beta=beta.sigmoid(), use_gate_in_kernel=True, A_log=A_log, dt_bias=bias[:H])[0]
    want = ours.chunk_gated_delta_rule(q, k, v, -A_log.exp() * F.softplus(raw + bias[:H]), beta.sigmoid())[0]
    close(got, want)
    for function in (ours.chunk_gated_delta_rule, ours.chunk_gdn):
        close(function(q, k, v, raw, beta.sigmoid(), use_gate_in_kernel=True, A_log=A_log, dt_bias=bias[:H], chunk_size=64)[0], want)


def test_signatures():
    """Arguments stand in the order of flash-linear-attention's, with its defaults."""
    theirs = {**vars(fla.ops), **vars(fla.ops.gdn2), **vars(fla.ops.gated_delta_product), **vars(fla.ops.hgrn)}
    shared = [name for name in ours.__all__ if name in theirs and name not in ("fused_chunk_gla", "fused_chunk_delta_rule")]
    assert len(shared) >= 42
    for name in shared:
        want = [x for x in inspect.signature(theirs[name]).parameters.values() if x.kind == x.POSITIONAL_OR_KEYWORD]
        got = [x for x in inspect.signature(getattr(ours, name)).parameters.values() if x.kind == x.POSITIONAL_OR_KEYWORD]
        assert [x.name for x in got[: len(want)]] == [x.name for x in want], name
        assert [x.default for x in got[: len(want)]] == [x.default for x in want], name


@pytest.mark.parametrize("call, text", [
    (lambda q: ours.chunk_retention(q, q, q, head_first=True), "head_first"),
    (lambda q: ours.fused_recurrent_gla(q, q, q, gv=q), "expected no gv"),
    (lambda q: ours.parallel_attn(q, q, q, sink_bias=q[0, 0, :, 0]), "expected no sink_bias"),
    (lambda q: ours.parallel_retention(q, q, q, output_attentions=True), "output_attentions"),
    (lambda q: ours.chunk_gated_delta_rule(q, q, q, q[..., 0], q[..., 0], allow_neg_eigval=True), "use_beta_sigmoid_in_kernel"),
    (lambda q: ours.fused_recurrent_linear_attn(q, q, q, reverse=True, normalize=True, cu_seqlens=torch.tensor([0, 4])), "without cu_seqlens"),
    (lambda q: ours.chunk_gated_delta_rule(q, q, q, q[..., 0], q[..., 0], use_gate_in_kernel=True), "expected g and A_log"),
    (lambda q: ours.chunk_gdn(q, q, q, q[..., 0], q[..., 0], state_v_first=True, transpose_state_layout=True), "got both"),
    (lambda q: ours.chunk_gla(q, q, q, q[..., :2]), "expected log_decay of shape"),
    (lambda q: ours.chunk_gated_delta_product(q, q, q, None, q[..., 0], 2), "expected 2 keys for each of 4 queries, got 4"),
    (lambda q: ours.chunk_gdn2(q, q, q, q, q, q, use_gate_in_kernel=True), "chunk_gdn2: expected A_log"),
    (lambda q: ours.chunk_gdn2(q[:, :, :0], q, q, q, q, q), "chunk_gdn2: expected q and k with a number of heads that divides the 2 of v, got 0"),
    (lambda q: ours.chunk_comba(q.repeat(1, 1, 2, 1), q, q, None, q[..., 0]), "chunk_comba: .* that divides the 2 of v, got 4"),
])
def test_refusals(call, text):
    with pytest.raises(ValueError, match=text):
        call(torch.ones(1, 4, 2, 3))
