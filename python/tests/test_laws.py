"""The laws for arrays: against the formulas, without copies, with clear refusals."""
import enum
import gc
import os
import subprocess
import sys
import threading

import formulas
import numpy as np
import pytest

import isomer

TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}
LENGTHS = [1, 2, 63, 64, 130]


def close(got, want, kind):
    want = np.asarray(want)
    assert got.dtype == kind and got.shape == want.shape
    limit = TOLERANCE[kind] * max(1.0, np.abs(want).max(initial=0.0))
    assert np.abs(got - want).max(initial=0.0) <= limit


class Draw:
    """Random tensors of one problem."""

    def __init__(self, T, kind, B=2, H=4, G=2, K=5, V=3, seed=1):
        self.rng, self.kind = np.random.default_rng(seed + T), kind
        self.B, self.T, self.H, self.G, self.K, self.V = B, T, H, G, K, V
        self.q, self.k, self.v = self.normal(B, T, H, K), self.normal(B, T, G, K), self.normal(B, T, G, V)

    def normal(self, *shape):
        return self.rng.standard_normal(shape).astype(self.kind)

    def log_decay(self, *shape):
        return (-self.rng.exponential(0.3, shape)).astype(self.kind)

    def unit(self, *shape):
        return self.rng.uniform(0.05, 0.95, shape).astype(self.kind)

    @property
    def tokens(self):
        return self.B, self.T, self.H


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def kind(request):
    return request.param


@pytest.fixture(params=LENGTHS)
def draw(request, kind):
    return Draw(request.param, kind)


def test_attention(draw, kind):
    forget = draw.log_decay(*draw.tokens)
    bias = draw.normal(draw.q.shape[2], 5)
    for options in ({}, {"window": 7}, {"causal": False}, {"scale": 0.2}, {"bias": bias}, {"bias": bias, "causal": False, "window": 6},
                    {"causal": False, "block": 3}):
        r = isomer.attention(draw.q, draw.k, draw.v, **options)
        o, log_sum = formulas.attention(draw.q, draw.k, draw.v, **options)
        close(r.o, o, kind), close(r.log_sum, log_sum, kind)
    close(isomer.attention(draw.q, draw.k, draw.v, log_forget=forget).o,
          formulas.attention(draw.q, draw.k, draw.v, forget)[0], kind)


def test_attention_of_the_last_queries(kind):
    draw = Draw(20, kind)
    close(isomer.attention(draw.q[:, -3:], draw.k, draw.v).o, formulas.attention(draw.q, draw.k, draw.v)[0][:, -3:], kind)


def test_scalar_decay(draw, kind):
    state, decay = draw.normal(2, 4, 5, 3), draw.log_decay(*draw.tokens)
    for log_decay in (None, decay, decay[0, 0]):
        r = isomer.scalar_decay(draw.q, draw.k, draw.v, log_decay=log_decay, initial_state=state)
        o, final = formulas.scalar_decay(draw.q, draw.k, draw.v, log_decay, state)
        close(r.o, o, kind), close(r.final_state, final, kind)
        assert r.final_norm is None


def test_mlstm(draw, kind):
    decay, inputs = draw.log_decay(*draw.tokens), draw.normal(*draw.tokens)
    r = isomer.scalar_decay(draw.q, draw.k, draw.v, log_decay=decay, log_input=inputs, normaliser="max")
    close(r.o, formulas.mlstm(draw.q, draw.k, draw.v, decay, inputs), kind)
    assert r.final_max.shape == (2, 4)


def test_channel_decay(draw, kind):
    decay, state, bonus = draw.log_decay(*draw.tokens, 5), draw.normal(2, 4, 5, 3), draw.normal(4, 5)
    for options in ({}, {"read": "before", "bonus": bonus}):
        r = isomer.channel_decay(draw.q, draw.k, draw.v, decay, initial_state=state, **options)
        o, final = formulas.channel_decay(draw.q, draw.k, draw.v, decay, state, **options)
        close(r.o, o, kind), close(r.final_state, final, kind)


def test_delta(draw, kind):
    beta, state = draw.unit(*draw.tokens), draw.normal(2, 4, 5, 3)
    for decay in (None, draw.log_decay(*draw.tokens), draw.log_decay(*draw.tokens, 5)):
        r = isomer.delta(draw.q, draw.k, draw.v, beta=beta, log_decay=decay, initial_state=state, l2norm=True)
        o, final = formulas.delta(draw.q, draw.k, draw.v, beta, decay, state, l2norm=True)
        close(r.o, o, kind), close(r.final_state, final, kind)


def test_low_rank(draw, kind):
    decay = draw.log_decay(*draw.tokens, 5)
    unit = draw.normal(*draw.tokens, 5)
    a = -unit / np.linalg.norm(unit, axis=-1, keepdims=True)
    b = (-a * draw.unit(*draw.tokens, 1)).astype(kind)
    r = isomer.delta(draw.q, draw.k, draw.v, log_decay=decay, a=a, b=b)
    o, final = formulas.low_rank(draw.q, draw.k, draw.v, decay, a, b)
    close(r.o, o, kind), close(r.final_state, final, kind)


def test_scan(draw, kind):
    x, decay, angle, state = draw.normal(2, draw.T, 7), draw.log_decay(2, draw.T, 7), draw.normal(2, draw.T, 7), draw.normal(2, 7)
    r = isomer.scan(x=x, log_decay=decay, initial_state=state)
    h, final = formulas.scan(x, decay, initial_state=state)
    close(r.h, h, kind), close(r.final_state, final, kind)
    r = isomer.scan(x=x, log_decay=decay, angle=angle)
    h, final = formulas.scan(x, decay, angle)
    close(r.h, h.real, kind), close(r.h_imag, h.imag, kind), close(r.final_imag, final.imag, kind)


def test_s6(draw, kind):
    x, step = draw.normal(2, draw.T, 6), draw.unit(2, draw.T, 6)
    a, b, c, d = -draw.unit(6, 4) - 0.5, draw.normal(2, draw.T, 4), draw.normal(2, draw.T, 4), draw.normal(6)
    r = isomer.scan(x=x, step=step, a=a.astype(kind), b=b, c=c, d=d)
    o, final = formulas.s6(x, step, a, b, c, d)
    close(r.o, o, kind), close(r.final_state, final, kind)


@pytest.mark.parametrize("form", ["reference", "step", "chunk", "parallel"])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_forms_and_threads(form, threads, kind):
    draw = Draw(70, kind)
    decay = draw.log_decay(*draw.tokens, 5)
    got = isomer.channel_decay(draw.q, draw.k, draw.v, decay, form=form, threads=threads)
    one = isomer.channel_decay(draw.q, draw.k, draw.v, decay, form=form, threads=1)
    close(got.o, formulas.channel_decay(draw.q, draw.k, draw.v, decay)[0], kind)
    assert np.array_equal(got.o, one.o)


def test_packed_sequences(kind):
    draw = Draw(40, kind, B=1)
    beta, edges = draw.unit(*draw.tokens), [0, 7, 7, 40]
    for offsets in (np.array(edges), np.array(edges, dtype=np.int32)):
        r = isomer.delta(draw.q, draw.k, draw.v, beta=beta, offsets=offsets, l2norm=True)
        assert r.final_state.shape == (3, 4, 5, 3)
        for i, (begin, end) in enumerate(zip(edges, edges[1:])):
            own = slice(begin, end)
            o, final = formulas.delta(draw.q[:, own], draw.k[:, own], draw.v[:, own], beta[:, own], l2norm=True)
            close(r.o[:, own], o, kind), close(r.final_state[i : i + 1], final, kind)


def test_gradients_are_slopes():
    draw = Draw(9, np.float64)
    inputs = {"q": draw.q, "k": draw.k, "v": draw.v, "beta": draw.unit(*draw.tokens), "log_decay": draw.log_decay(*draw.tokens),
              "initial_state": draw.normal(2, 4, 5, 3)}
    to_o, to_state = draw.normal(2, 9, 4, 3), draw.normal(2, 4, 5, 3)
    got = isomer.apply("delta", {**inputs, "grad_o": to_o, "grad_final_state": to_state}, {"l2norm": True})

    def loss(changed):
        o, final = formulas.delta(**{**inputs, **changed}, l2norm=True)
        return (o * to_o).sum() + (final * to_state).sum()

    for name, x in inputs.items():
        direction = draw.normal(*x.shape)
        slope = (loss({name: x + 1e-6 * direction}) - loss({name: x - 1e-6 * direction})) / 2e-6
        assert abs((got["grad_" + name] * direction).sum() - slope) <= 1e-7 * max(1, abs(slope)), name


def test_strides_need_no_copy(kind):
    draw = Draw(33, kind)
    want = isomer.scalar_decay(draw.q, draw.k, draw.v).o
    heads_first = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for x in (draw.q, draw.k, draw.v)]
    backwards = [np.ascontiguousarray(x[:, ::-1, :, ::-1])[:, ::-1, :, ::-1] for x in (draw.q, draw.k, draw.v)]
    wide = [np.repeat(x, 2, axis=3)[..., ::2] for x in (draw.q, draw.k, draw.v)]
    for inputs in (heads_first, backwards, wide):
        assert np.array_equal(isomer.scalar_decay(*inputs).o, want)
    one_head = np.broadcast_to(draw.q[:, :, :1], draw.q.shape)  # a stride of 0
    assert np.array_equal(isomer.scalar_decay(one_head, draw.k, draw.v).o, isomer.scalar_decay(one_head.copy(), draw.k, draw.v).o)


def test_arrays_are_not_copied():
    """Large arrays, of which a copy would show in the largest memory that the process has had."""
    code = """
import resource
import numpy as np
import isomer
x = np.ones((1, 1 << 20, 1, 32), np.float32)[:, ::-1]  # 128 MB, and not dense
small = x[:, :64]
isomer.attention(small, small, small)
largest = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
before = largest()
isomer.attention(small[:, :1], x, x, window=2, form="step")
print(largest() - before)
"""
    grown = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert grown < 64, f"{grown} MB"


def test_arrays_are_read_where_they_are():
    """A thread of ours changes nothing, and a view of another's memory is not copied: the call sees what is written there."""
    memory = bytearray(4 * 2 * 3)
    q = np.frombuffer(memory, dtype=np.float32).reshape(1, 2, 1, 3)
    first = isomer.attention(q, q, q).o.copy()
    np.frombuffer(memory, dtype=np.float32)[:] = 2
    assert not np.array_equal(isomer.attention(q, q, q).o, first)
    assert isomer.attention(memoryview(q), q, q).o.shape == (1, 2, 1, 3)


class Elsewhere:
    """An array that says it is on a device."""

    def __init__(self, x, device):
        self.x, self.device = x, device

    def __dlpack__(self, **options):
        return self.x.__dlpack__()

    def __dlpack_device__(self):
        return self.device


def test_dlpack_alone():
    """Whatever has __dlpack__ and no buffer, as arrays of JAX have."""

    draw = Draw(10, np.float32)
    got = isomer.attention(Elsewhere(draw.q, (1, 0)), Elsewhere(draw.k.copy(), (1, 0)), draw.v).o
    assert np.array_equal(got, isomer.attention(draw.q, draw.k, draw.v).o)


def test_pointers_are_those_of_the_arrays():
    draw = Draw(10, np.float32)
    fixed = draw.k.copy()
    fixed.flags.writeable = False
    for x in (draw.q, draw.q[:, ::-1, :, ::-1], draw.q.transpose(0, 2, 1, 3), draw.q[:, 3:, 1:2], np.broadcast_to(draw.q[:1], draw.q.shape), fixed):
        place = x.__array_interface__["data"][0]
        assert isomer._engine.address_of("q", x) == place
        assert not x.flags.writeable or isomer._engine.address_of("q", Elsewhere(x, (1, 0))) == place
    assert isomer._engine.address_of("q", draw.q.astype(np.float16)) != draw.q.__array_interface__["data"][0]


def test_another_device_is_refused():
    x = np.ones((1, 2, 1, 3), np.float32)
    assert isomer.attention(Elsewhere(x, (enum.IntEnum("Device", "cpu").cpu, 0)), x, x).o.shape == x.shape
    with pytest.raises(ValueError, match="expected q in the memory of the CPU"):
        isomer.attention(Elsewhere(x, (2, 0)), x, x)


def test_what_dlpack_cannot_give_is_refused():
    class Broken:
        def __dlpack__(self, **options):
            raise BufferError("no")

    x = np.ones((1, 2, 1, 3), np.float32)
    with pytest.raises(ValueError, match="expected an array that DLPack gives as q"):
        isomer.attention(Broken(), x, x)


def test_brain_floats_of_numpy():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    draw = Draw(12, np.float32)
    brain = [x.astype(bfloat16)[:, ::2] for x in (draw.q, draw.k, draw.v)]
    got = isomer.attention(*brain).o
    assert got.dtype == np.float32 and np.array_equal(got, isomer.attention(*[x.astype(np.float32) for x in brain]).o)


def test_read_only_and_empty(kind):
    draw = Draw(5, kind)
    for x in (draw.q, draw.k, draw.v):
        x.flags.writeable = False
    assert isomer.attention(draw.q, draw.k, draw.v).o.shape == (2, 5, 4, 3)
    nothing = isomer.scalar_decay(draw.q[:, :0], draw.k[:, :0], draw.v[:, :0], initial_state=np.ones((2, 4, 5, 3), kind))
    assert nothing.o.shape == (2, 0, 4, 3) and (nothing.final_state == 1).all()


def test_half_precision_is_computed_in_float32():
    draw = Draw(12, np.float32)
    half = [x.astype(np.float16) for x in (draw.q, draw.k, draw.v)]
    want = isomer.attention(*[x.astype(np.float32) for x in half]).o
    got = isomer.attention(*half).o
    assert got.dtype == np.float32 and np.array_equal(got, want)


@pytest.mark.parametrize("call, text", [
    (lambda x: isomer.attention(x, x, x[:, :, :, 0]), "attention: expected v of shape"),
    (lambda x: isomer.attention(x, x, x.astype(np.float64)), "expected one floating type"),
    (lambda x: isomer.attention(x, x, x.astype(np.complex64)), "expected v of type float32"),
    (lambda x: isomer.attention(x, x, x.astype(np.int64)), "attention: expected v of type F32 or F64, got I64"),
    (lambda x: isomer.attention(x, x, x.astype(">f4")), "expected v of type float32"),
    (lambda x: isomer.attention(x, x, [1.0]), "expected an array as v"),
    (lambda x: isomer.attention(x, x, (x,)), "attention: expected an array as v, got a tuple"),
    (lambda x: isomer.attention(x, x, (8, 0, (1, 3, 2, 4), (24, 8, 4, 1))), "attention: expected an array as v, got a tuple"),
    (lambda x: isomer.apply("attention", {"q": x, "k": x, "v": (x,)}), "attention: expected an array as v, got a tuple"),
    (lambda x: isomer.apply("attention", [x, x, x]), "apply: expected a dictionary of tensors, got list"),
    (lambda x: isomer.apply("attention", {"q": x}, [1]), "apply: expected a dictionary of options, got list"),
    (lambda x: isomer.apply(3, {"q": x}), "apply: expected the name of a law, got 3"),
    (lambda x: isomer.dsf("gla", (x,)), "gla: expected an array as x, got a tuple"),
    (lambda x: isomer.attention(x, x, np.ma.masked_array(x, x > 0)), "attention: expected v without a mask"),
    (lambda x: isomer.attention(x, x, x, window=-1), "window"),
    (lambda x: isomer.attention(x, x, x, kernel="expo"), "kernel"),
    (lambda x: isomer.attention(x, x, x, form="chnk"), "unknown form chnk"),
    (lambda x: isomer.delta(x, x, x, beta=x[..., 0], form="parallel"), "expected a form that it has"),
    (lambda x: isomer.channel_decay(x, x, x, x, bonus=x[0, 0]), "bonus is not used with these options"),
    (lambda x: isomer.apply("atention", {"q": x}), "did you mean attention"),
    (lambda x: isomer.apply("attention", {"q": x, "k": x, "vv": x}), "unknown input vv"),
    (lambda x: isomer.apply("attention", {"q": x, "k": x, "v": x}, {"windw": 3}), "window"),
    (lambda x: isomer.apply("attention", {"q": x, "k": x, "v": x * np.inf}), "expected finite numbers in v"),
    (lambda x: isomer.set_threads(-1), "set_threads: expected a whole number from 0"),
    (lambda x: isomer.attention(x, x, None), "attention: expected an input v, found none"),
    (lambda x: isomer.attention(x, x, x, threads="2"), "threads: expected a whole number"),
    (lambda x: isomer.attention(x, x, x, threads=-1), "threads: expected a whole number"),
    (lambda x: isomer.attention(x, x, x, form=3), "attention: expected the name of a form"),
    (lambda x: isomer.attention(x, x, x, scale=x), "attention: expected scale as a number"),
    (lambda x: isomer.attention(x, x, x, causal=[True]), "attention: expected causal as a number"),
    (lambda x: isomer.dsf("gla", x[0, :, 0], seed=-1), "dsf: seed: expected a whole number"),
])
def test_refusals(call, text):
    with pytest.raises(ValueError, match=text.replace("[", "\\[")):
        call(np.ones((1, 3, 2, 4), np.float32))


def test_options_of_numpy():
    draw = Draw(9, np.float32)
    want = isomer.attention(draw.q, draw.k, draw.v, causal=False, window=3, scale=0.5).o
    got = isomer.attention(draw.q, draw.k, draw.v, causal=np.bool_(False), window=np.int32(3), scale=np.array(0.5, np.float32), form=None,
                           threads=np.int64(2)).o
    assert np.array_equal(got, want)
    assert np.array_equal(isomer.apply("attention", {"q": draw.q, "k": draw.k, "v": draw.v}, {"scale": np.float32(0.5)}, form=None)["o"],
                          isomer.attention(draw.q, draw.k, draw.v, scale=0.5).o)


def test_every_tensor_and_option_is_a_keyword():
    """The functions name what the laws name: a new option of a law cannot be forgotten here."""
    import inspect

    for law in isomer.laws():
        own = set(inspect.signature(getattr(isomer, law["name"])).parameters) - {"form", "threads"}
        assert own == {x["name"] for x in law["inputs"] + law["options"]}, law["name"]
        page = getattr(isomer, law["name"]).__doc__
        assert all(x["name"] in page for x in law["inputs"]), law["name"]


def test_threads_of_python():
    draw = Draw(200, np.float32)
    want = isomer.attention(draw.q, draw.k, draw.v).o
    wrong = []

    def work():
        for _ in range(20):
            if not np.array_equal(isomer.attention(draw.q, draw.k, draw.v, threads=2).o, want):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    [w.start() for w in workers], [w.join() for w in workers]
    assert not wrong


def test_after_a_fork():
    draw = Draw(200, np.float32)
    want = isomer.attention(draw.q, draw.k, draw.v, threads=2).o
    child = os.fork()
    if child == 0:
        same = np.array_equal(isomer.attention(draw.q, draw.k, draw.v, threads=2).o, want)
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_memory_stays_flat():
    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    draw = Draw(16, np.float32)
    beta = draw.unit(*draw.tokens)
    calls = lambda n: [isomer.delta(draw.q, draw.k, draw.v, beta=beta, l2norm=True) for _ in range(n)] and None
    calls(500)
    gc.collect()
    before = resident()
    for _ in range(100):
        calls(100)
    assert resident() - before < 4 << 20
