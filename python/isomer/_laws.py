"""The laws for arrays. Tensors and options are keywords, named and shaped as the program's `apply` has them."""
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from numpy import ndarray
from numpy.ma import MaskedArray

from isomer import _engine
from isomer._arrays import by_name, empty_like_kind, is_tensor, numpy_empty, plain, readable, text_of, thread_count


class AttentionResult(NamedTuple):
    """o [B,T,H,V]; log_sum [B,T,H] of the kernel exp with the normaliser sum, else None."""

    o: Any
    log_sum: Any = None


class ScalarDecayResult(NamedTuple):
    """o [B,T,H,V] and the states after the last token; None where the normaliser has none."""

    o: Any
    final_state: Any = None
    final_norm: Any = None
    final_max: Any = None
    final_value_sum: Any = None
    final_count: Any = None


class StateResult(NamedTuple):
    """o [B,T,H,V] and final_state [B,H,K,V]."""

    o: Any
    final_state: Any


class ScanResult(NamedTuple):
    """h [B,T,N], h_imag when complex, and the states after the last token; of S6 o [B,T,C] in place of h."""

    h: Any = None
    h_imag: Any = None
    final_state: Any = None
    final_imag: Any = None
    o: Any = None


@lru_cache(maxsize=256)
def _bound(law: str, options: tuple) -> _engine.BoundLaw:
    return _engine.BoundLaw(law, {name: text_of(law, name, value) for name, value in options})


_COMMON = """
    Letters: B batch, T time, S time of keys, H heads, K and V sizes of keys and values, N and C channels. q, k and v may have different
    numbers of heads, G: H is the largest, the others divide it, and head h reads head h // (H/G). offsets [n+1], from 0 to T, packs n
    sequences into one row; states are then [n, ...].

    Arrays are NumPy's, or whatever has DLPack or a buffer on the CPU, of float32 or float64, with any strides, and are not copied
    (bfloat16 and float16 are, and computed in float32); for tensors of PyTorch the result is differentiable. Options that are None are
    at their default.

    form: auto takes the fastest; reference (the equation as loops in double), step, chunk{forms} give the same numbers but for rounding.
    threads: how many work, None as set_threads() says; the result does not depend on it. Mistakes are ValueErrors.
"""
_Function = TypeVar("_Function", bound=Callable)


def _page(result, example: str, parallel: bool = True) -> Callable[[_Function], _Function]:
    """Adds to the docstring of a law what all have in common, its result and an example."""

    def add(law: _Function) -> _Function:
        fields = " ".join(result.__doc__.split())
        shown = "\n".join(f"        {line}" for line in example.strip().splitlines())
        law.__doc__ = (f"{(law.__doc__ or '').rstrip()}\n\n    Result: a named tuple with the fields {', '.join(result._fields)}: {fields}\n"
                       + _COMMON.replace("{forms}", " and parallel" if parallel else "") + f"\n    Example:\n{shown}\n    ")
        return law

    return add


def _form(law: str, form) -> str:
    if form is None:
        return "auto"
    if not isinstance(form, str):
        raise ValueError(f"{law}: expected the name of a form, such as auto or chunk, got {form!r}")
    return form


def _call(result, law: str, arrays: dict, options: dict, form: str, threads: int | None):
    arrays = {name: x for name, x in arrays.items() if x is not None}
    given = tuple([(name, plain(law, name, value)) for name, value in options.items() if value is not None])
    if type(form) is not str:
        form = _form(law, form)
    for name, x in arrays.items():
        if type(x) is ndarray:
            continue
        if type(x).__module__.startswith("torch") or is_tensor(x):
            from isomer.torch import run

            return result(**run(law, arrays, given, form, threads))
        if isinstance(x, MaskedArray):
            raise ValueError(f"{law}: expected {name} without a mask, which laws do not read; fill it")
        readable(law, name, x)
    return result(**_bound(law, given)(arrays, form, thread_count(threads), numpy_empty, False))


@_page(AttentionResult, """
q, k, v = np.random.default_rng(1).standard_normal((3, 1, 64, 4, 16), dtype=np.float32)   # [B, T, H, D]
o = isomer.attention(q, k, v).o                                  # causal softmax attention
o = isomer.attention(q, k[:, :, :2], v[:, :, :2], window=16).o   # two heads of keys, and the last 16 of them
""")
def attention(q, k, v, *, log_forget=None, gate=None, bias=None, offsets=None, scale: float | None = None, causal: bool | None = None,
              window: int | None = None, sinks: int | None = None, block: int | None = None, kernel: str | None = None,
              order: int | None = None, normaliser: str | None = None, eps: float | None = None, clamp: float | None = None,
              form: str = "auto", threads: int | None = None) -> AttentionResult:
    """Attention on all keys, or those of a window: o_t = N(sum_s kappa(scale q_t.k_s) exp(c_t - c_s + bias_(s-t)) v_s).

    q [B,T,H,K], k [B,S,G,K], v [B,S,G,V]; log_forget [B,S,H] (the gates of FoX, c is their running sum), gate [B,T,H] (with
    normaliser="gate"), bias [H,N] of the places s - t from -(N-1) to 0, or with causal=False from -(N//2) on (what is farther
    away has the last of its side); offsets [n+1] packs n sequences. With S > T the queries are the last T positions.

    kernel: exp, or taylor with its order (2). normaliser: sum (softmax), l2, rms, layer, count, gate, none. window: how many keys
    a query sees, itself counted (0: all), beside the first `sinks` ones. block: with causal=False, a query sees its own
    block of so many keys and those beside it. clamp: the largest logit. scale: K^-1/2.
    """
    arrays = {"q": q, "k": k, "v": v, "log_forget": log_forget, "gate": gate, "bias": bias, "offsets": offsets}
    options = {"scale": scale, "causal": causal, "window": window, "sinks": sinks, "block": block, "kernel": kernel,
               "order": order, "normaliser": normaliser, "eps": eps, "clamp": clamp}
    return _call(AttentionResult, "attention", arrays, options, form, threads)


@_page(ScalarDecayResult, """
q, k, v = np.random.default_rng(1).standard_normal((3, 1, 64, 4, 16), dtype=np.float32)   # [B, T, H, D]
r = isomer.scalar_decay(q, k, v, log_decay=np.full(4, -0.1, np.float32))
more = isomer.scalar_decay(q, k, v, log_decay=np.full(4, -0.1, np.float32), initial_state=r.final_state)
""")
def scalar_decay(q, k, v, *, log_decay=None, log_input=None, initial_state=None, initial_norm=None, initial_max=None,
                 initial_value_sum=None, initial_count=None, offsets=None, scale: float | None = None,
                 normaliser: str | None = None, causal: bool | None = None, eps: float | None = None, form: str = "auto",
                 threads: int | None = None) -> ScalarDecayResult:
    """Linear attention with a decay of each head: S_t = exp(log_decay_t) S_{t-1} + exp(log_input_t) k_t v_t^T, o_t = scale S_t^T q_t.

    q [B,T,H,K], k [B,T,G,K], v [B,T,G,V]; log_decay [B,T,H] or [H], log_input [B,T,H]; initial_state [B,H,K,V], initial_norm
    [B,H,K], initial_max [B,H], initial_value_sum [B,H,V], initial_count [B]; offsets [n+1] packs n sequences.

    normaliser: none, sum (divided by q.n with n the sum of keys), max (mLSTM), subtract (InLine). RetNet, Mamba-2, mLSTM and
    linear attention with any feature map are this law. scale: K^-1/2.
    """
    arrays = {"q": q, "k": k, "v": v, "log_decay": log_decay, "log_input": log_input, "initial_state": initial_state,
              "initial_norm": initial_norm, "initial_max": initial_max, "initial_value_sum": initial_value_sum,
              "initial_count": initial_count, "offsets": offsets}
    options = {"scale": scale, "normaliser": normaliser, "causal": causal, "eps": eps}
    return _call(ScalarDecayResult, "scalar_decay", arrays, options, form, threads)


@_page(StateResult, """
q, k, v = np.random.default_rng(1).standard_normal((3, 1, 64, 4, 16), dtype=np.float32)   # [B, T, H, D]
r = isomer.channel_decay(q, k, v, log_decay=-np.abs(k))
r.o, r.final_state
""")
def channel_decay(q, k, v, log_decay, *, bonus=None, initial_state=None, offsets=None, scale: float | None = None,
                  read: str | None = None, form: str = "auto", threads: int | None = None) -> StateResult:
    """Linear attention with a decay of each key channel: S_t = diag(exp(log_decay_t)) S_{t-1} + k_t v_t^T, o_t = scale S_t^T q_t.

    q [B,T,H,K], k [B,T,G,K], v [B,T,G,V], log_decay [B,T,H,K]; bonus [H,K] (with read="before"); initial_state [B,H,K,V];
    offsets [n+1] packs n sequences.

    read: after, or before (RWKV-6): o_t = scale (S_{t-1}^T q_t + (q_t.(bonus k_t)) v_t). GLA, HGRN2, MetaLA and RWKV-6 are this
    law. scale: K^-1/2.
    """
    arrays = {"q": q, "k": k, "v": v, "log_decay": log_decay, "bonus": bonus, "initial_state": initial_state, "offsets": offsets}
    return _call(StateResult, "channel_decay", arrays, {"scale": scale, "read": read}, form, threads)


@_page(StateResult, """
q, k, v = np.random.default_rng(1).standard_normal((3, 1, 64, 4, 16), dtype=np.float32)   # [B, T, H, D]
r = isomer.delta(q, k, v, beta=np.full((1, 64, 4), 0.5, np.float32), l2norm=True)
r.o, r.final_state                                           # [1, 64, 4, 16], [1, 4, 16, 16]
""", parallel=False)
def delta(q, k, v, beta=None, *, log_decay=None, a=None, b=None, initial_state=None, offsets=None, scale: float | None = None,
          l2norm: bool | None = None, form: str = "auto", threads: int | None = None) -> StateResult:
    """A memory that overwrites: S_t = D_t - beta_t k_t (k_t^T D_t - v_t^T) with D_t = exp(log_decay_t) S_{t-1}, o_t = scale S_t^T q_t.

    q [B,T,H,K], k [B,T,G,K], v [B,T,G,V], beta [B,T,H]; log_decay [B,T,H] (Gated DeltaNet) or [B,T,H,K] (KDA); initial_state
    [B,H,K,V]; offsets [n+1] packs n sequences. With a and b [B,T,H,K] in place of beta it is the rule of RWKV-7:
    S_t = diag(exp(log_decay_t)) S_{t-1} + b_t (a_t^T S_{t-1}) + k_t v_t^T.

    l2norm: q and k become x / sqrt(sum x^2 + 1e-6) first. scale: K^-1/2.
    """
    arrays = {"q": q, "k": k, "v": v, "beta": beta, "log_decay": log_decay, "a": a, "b": b, "initial_state": initial_state,
              "offsets": offsets}
    return _call(StateResult, "delta", arrays, {"scale": scale, "l2norm": l2norm}, form, threads)


@_page(ScanResult, """
x = np.random.default_rng(1).standard_normal((1, 64, 8), dtype=np.float32)
h = isomer.scan(x=x, log_decay=np.full_like(x, -0.1)).h
""", parallel=False)
def scan(*, x, log_decay=None, angle=None, x_imag=None, step=None, a=None, b=None, c=None, d=None, initial_state=None,
         initial_imag=None, offsets=None, form: str = "auto", threads: int | None = None) -> ScanResult:
    """A recurrence of each channel: h_t = exp(log_decay_t + i angle_t) h_{t-1} + x_t.

    x and log_decay [B,T,N]; angle, x_imag [B,T,N] (complex); initial_state, initial_imag [B,N]; offsets [n+1] packs n sequences.
    With step [B,T,C] (after softplus), a [C,N], b and c [B,T,N], d [C] it is S6 (Mamba) on x [B,T,C]: o_t = sum_n c_n h_n + d x_t,
    with initial_state [B,C,N]. S4D, S5, LRU, RG-LRU and qLSTM are the plain one.
    """
    arrays = {"x": x, "log_decay": log_decay, "angle": angle, "x_imag": x_imag, "step": step, "a": a, "b": b, "c": c, "d": d,
              "initial_state": initial_state, "initial_imag": initial_imag, "offsets": offsets}
    return _call(ScanResult, "scan", arrays, {}, form, threads)


def apply(law: str, tensors: Mapping[str, Any], options: Mapping[str, Any] | None = None, *, form: str = "auto",
          threads: int | None = None) -> dict[str, Any]:
    """`isomer apply` on arrays: outputs by name, and grad_X for every floating input X when grad_o (scan: grad_h) or grad_final_...
    is among the tensors. Numbers that are not finite are refused, but -inf as the logarithm of a decay.
    """
    by_name("apply", "tensors", tensors)
    by_name("apply", "options", options or {})
    if not isinstance(law, str):
        raise ValueError(f"apply: expected the name of a law, got {law!r}")
    bound = _bound(law, tuple([(name, plain(law, name, value)) for name, value in (options or {}).items()]))
    arrays = {name: readable(law, name, x) for name, x in tensors.items()}
    return bound(arrays, _form(law, form), thread_count(threads), empty_like_kind(tensors.values()), True)


def laws() -> list[dict]:
    """What every law says about itself: name, equation, inputs, outputs, options, forms."""
    return _engine.laws()
