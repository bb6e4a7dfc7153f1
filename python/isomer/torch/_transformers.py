"""Models of Hugging Face transformers on the laws: accelerate(model) and restore(model), and attention by the name "isomer".

Modules of a model are changed one by one, never their classes: a method that calls a function of its modeling file is made again
with ours in its place. So other models, and this one after restore(), are as they were.
"""
import functools
import types
from collections import Counter
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from isomer import fla, mamba, mlstm
from isomer import torch as laws
from isomer.torch._attention import arithmetic, register_attention
from isomer.torch._products import linear_forward, products_are_slow


# What the functions of modeling files do, under their names and with their arguments.


# Modeling files pass the keywords of their model on to kernels: those that a kernel knows go to ours, which has or refuses them; the
# others (use_cache, ...) mean nothing to it.
_CONV = ("seq_idx", "initial_states", "return_final_states", "final_states_out")
_DELTA = ("scale", "use_gate_in_kernel", "A_log", "dt_bias", "use_beta_sigmoid_in_kernel", "allow_neg_eigval", "state_v_first",
          "transpose_state_layout", "cp_context", "head_first")


def _known(kwargs: dict, *names: str) -> dict:
    return {name: kwargs[name] for name in names if kwargs.get(name) is not None}


def _conv(hidden_states, weight, bias=None, activation=None, **kwargs):
    return fla.causal_conv1d_fn(hidden_states, weight, bias, activation=activation, **_known(kwargs, *_CONV))


def _conv_update(hidden_states, conv_state, weight, bias=None, activation=None, **kwargs):
    mamba._none("causal_conv1d_update", **_known(kwargs, "cache_seqlens", "conv_state_indices", *_CONV))
    before = conv_state[:, :, conv_state.shape[2] - (weight.shape[1] - 1) :].clone()
    y = fla.causal_conv1d_fn(hidden_states, weight, bias, initial_states=before, activation=activation)
    with torch.no_grad():
        conv_state.copy_(torch.cat([conv_state, hidden_states.to(conv_state.dtype)], 2)[:, :, -conv_state.shape[2] :])
    return y


def _gated_delta(query, key, value, g, beta, *, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False,
                 cu_seqlens=None, **kwargs):
    return fla.chunk_gated_delta_rule(query, key, value, g, beta, initial_state=initial_state, output_final_state=output_final_state,
                                      use_qk_l2norm_in_kernel=use_qk_l2norm_in_kernel, cu_seqlens=cu_seqlens, **_known(kwargs, *_DELTA))


def _kimi_delta(query, key, value, g, beta, *, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False,
                cu_seqlens=None, **kwargs):
    return fla.chunk_kda(query, key, value, g, beta, initial_state=initial_state, output_final_state=output_final_state,
                         use_qk_l2norm_in_kernel=use_qk_l2norm_in_kernel, cu_seqlens=cu_seqlens, **_known(kwargs, "lower_bound", *_DELTA))


def _selective_scan(hidden_states, dt, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False, **kwargs):
    return fla.selective_scan_fn(hidden_states, dt, A, B, C, D, z, delta_bias, delta_softplus, return_last_state)


def _selective_update(state, hidden_states, dt, A, B, C, D=None, dt_bias=None, dt_softplus=False, z=None, **kwargs):
    return fla.selective_state_update(state, hidden_states, dt, A, B, C, D, z, dt_bias, dt_softplus, **_known(kwargs, "state_batch_indices"))


def _chunk_scan(hidden_states, dt, A, B, C, chunk_size, D=None, dt_bias=None, initial_states=None, dt_softplus=False,
                dt_limit=(0.0, float("inf")), return_final_states=False, **kwargs):
    return fla.mamba_chunk_scan_combined(hidden_states, dt, A, B, C, chunk_size, D=D, dt_bias=dt_bias, initial_states=initial_states,
                                         dt_softplus=dt_softplus, dt_limit=dt_limit, return_final_states=return_final_states,
                                         **_known(kwargs, "z", "seq_idx", "cu_seqlens", "return_varlen_states"))


@torch.no_grad()
def _chunk_update(state, hidden_states, dt, A, B, C, D=None, dt_bias=None, dt_softplus=False, z=None, **kwargs):
    """One token of Mamba-2: state [B, H, P, N], hidden_states [B, H, P]; dt, A, D and dt_bias are the same along P."""
    mamba._none("selective_state_update", **_known(kwargs, "state_batch_indices"))
    one = lambda x: None if x is None else x[..., 0]
    o, final = fla.mamba_chunk_scan_combined(
        hidden_states.unsqueeze(1), one(dt).unsqueeze(1), A[:, 0, 0], B.unsqueeze(1), C.unsqueeze(1), D=one(D), dt_bias=one(dt_bias),
        z=None if z is None else z.unsqueeze(1), initial_states=state, dt_softplus=dt_softplus, return_final_states=True)
    state.copy_(final)
    return o.squeeze(1)


def _not_fused(*args, **kwargs):
    """What modeling files take for "no kernel is there", after which they call the functions above."""


FUNCTIONS = {
    "causal_conv1d_fn": (_conv, "short convolution"),
    "causal_conv1d_update": (_conv_update, "short convolution"),
    "torch_chunk_gated_delta_rule": (_gated_delta, "gated delta rule"),
    "torch_recurrent_gated_delta_rule": (_gated_delta, "gated delta rule"),
    "chunk_kimi_delta_attention": (_kimi_delta, "Kimi delta attention"),
    "recurrent_kimi_delta_attention": (_kimi_delta, "Kimi delta attention"),
    "mamba_selective_scan": (_selective_scan, "selective scan"),
    "mamba_selective_state_update": (_selective_update, "selective scan"),
    "mamba2_chunk_scan": (_chunk_scan, "state-space duality"),
    "mamba2_selective_state_update": (_chunk_update, "state-space duality"),
    "mamba_inner_fn": (_not_fused, ""),
    "mamba2_split_conv1d_scan_combined": (_not_fused, ""),
}


def _rebound(function):
    """A function of a modeling file that calls ours, and the names of what it calls; None if it calls none of them."""
    plain = function
    while hasattr(plain, "__wrapped__"):  # decorators move weights between devices, which a CPU does not need
        plain = plain.__wrapped__
    if not isinstance(plain, types.FunctionType):
        return None
    names = [name for name in plain.__code__.co_names if name in FUNCTIONS and name in plain.__globals__]
    if not names:
        return None
    own = dict(plain.__globals__) | {name: FUNCTIONS[name][0] for name in names}
    made = types.FunctionType(plain.__code__, own, plain.__name__, plain.__defaults__, plain.__closure__)
    made.__kwdefaults__ = plain.__kwdefaults__
    if "mamba_selective_scan" in names and "dt_proj" in plain.__code__.co_names:
        made = _with_steps(made)
    return functools.wraps(plain)(made), {FUNCTIONS[name][1] for name in names} - {""}


class _Steps:
    """The projection of Mamba's steps, whose weight its mixer multiplies from the left: W x^T is (x W^T)^T, which lies as the scan reads it,
    where PyTorch would write the transposed product once more."""

    def __init__(self, linear: nn.Linear):
        self.weight, self.bias = self, linear.bias
        self._linear = linear

    def __matmul__(self, columns: Tensor) -> Tensor:
        return F.linear(columns.transpose(1, 2), self._linear.weight).transpose(1, 2)


class _WithSteps:
    """A mixer of Mamba as its own methods see it."""

    def __init__(self, mixer: nn.Module):
        self._mixer, self.dt_proj = mixer, _Steps(mixer.dt_proj)

    def __getattr__(self, name: str):
        return getattr(self._mixer, name)


def _with_steps(function):
    return functools.wraps(function)(lambda self, *args, **kwargs: function(_WithSteps(self), *args, **kwargs))


# Modules whose work stands in a method of their own, by the end of their class's name.


def _gated_norm(self, hidden_states, gate=None):
    kind, shape = arithmetic(hidden_states), hidden_states.shape
    groups = getattr(self, "n_groups", None) or shape[-1] // getattr(self, "group_size", shape[-1])
    split = lambda x: None if x is None else x.to(kind).reshape(*shape[:-1], groups, shape[-1] // groups)
    first = not self.norm_before_gate if hasattr(self, "norm_before_gate") else hasattr(self, "group_size")
    y = laws.gated_norm(split(hidden_states), split(gate), self.weight.to(kind).view(groups, -1), eps=self.variance_epsilon,
                        activation=getattr(self, "activation", "silu"), gate_first=first)
    return y.reshape(shape).to(hidden_states.dtype)


def _plain_norm(self, hidden_states):
    kind = arithmetic(hidden_states)
    weight = self.weight.to(kind) + self._isomer_offset
    return laws.gated_norm(hidden_states.to(kind), None, weight, eps=_eps(self)).to(hidden_states.dtype)


def _eps(norm: nn.Module):
    return getattr(norm, "variance_epsilon", getattr(norm, "eps", None))


@torch.no_grad()
def _offset_of(norm: nn.Module) -> float | None:
    """RMS norms multiply by their weight, or by 1 + weight: which, or None for neither."""
    weight, eps = getattr(norm, "weight", None), _eps(norm)
    if not isinstance(weight, nn.Parameter) or weight.dim() != 1 or weight.dtype != torch.float32:
        return None
    if eps is None or getattr(norm, "bias", None) is not None:
        return None
    x = torch.linspace(-2, 3, 2 * len(weight)).reshape(2, -1)
    want = type(norm).forward(norm, x)
    rows = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return next((offset for offset in (0.0, 1.0) if torch.allclose(rows * (weight + offset), want, rtol=1e-5, atol=1e-5)), None)


def _rnn_scan(self, hidden_states, recurrent_gate, reset, recurrent_states, acc_dtype=torch.float32):
    """RG-LRU: a token at which `reset` is true forgets all before it."""
    kind = arithmetic(hidden_states)
    gate = recurrent_gate.to(kind).clamp_min(torch.finfo(kind).tiny)  # 0 has no logarithm to go back through
    start = None if recurrent_states is None else recurrent_states.to(kind)
    r = laws.scan(x=hidden_states.to(kind), log_decay=gate.log().masked_fill(reset, float("-inf")), initial_state=start)
    return r.h.to(hidden_states.dtype), r.final_state.to(acc_dtype)


def _cut_conv(self, x):
    """A convolution of channels by themselves, of whose output only the first tokens are read: as many as there were."""
    return fla.causal_conv1d_fn(x, self.weight.squeeze(1), self.bias)


def _lightning(self, hidden_states, position_embeddings, attention_mask, past_key_values=None, **kwargs):
    B, T, _ = hidden_states.shape
    qkv = self.act_fn(self.qkv_proj(hidden_states))
    if attention_mask is not None:
        qkv = (qkv * attention_mask[:, :, None]).to(qkv.dtype)
    kind = arithmetic(qkv)
    q, k, v = qkv.reshape(B, T, self.num_attention_heads, 3 * self.head_dim).to(kind).split(self.head_dim, dim=3)
    state = None if past_key_values is None else past_key_values.get_linear_cache(self.layer_idx)
    r = laws.scalar_decay(q, k, v, log_decay=-self.slope_rate.flatten().to(kind), scale=1.0,
                          initial_state=None if state is None else state.to(kind))
    o = self.norm(r.o.to(qkv.dtype).reshape(B, T, -1))
    state = r.final_state.to(qkv.dtype)
    if past_key_values is not None:
        past_key_values.set_linear_cache(self.layer_idx, state)
    return self.out_proj(F.sigmoid(self.output_gate(hidden_states)) * o), state


def _mlstm_backend(self, query, key, value, igate, fgate, c_initial=None, n_initial=None, m_initial=None, return_last_states=None,
                   mode=None):
    mode = self.config.mode if mode is None else mode
    last = self.config.return_last_states if return_last_states is None else return_last_states
    last = last or "inference" in mode
    return mlstm.mlstm_chunkwise(query, key, value, igate, fgate, c_initial, n_initial, m_initial, return_last_states=last,
                                 eps=self.config.eps)


def _method(function, module: nn.Module, key: str):
    """A function as a method of one module. A pickle knows methods by name: loaded, the module has its own again."""
    function.__name__ = key
    return types.MethodType(function, module)


def _changes(module: nn.Module, products: bool):
    """(attribute, value, what it is) for everything in which a module is changed."""
    name = type(module).__name__
    if products and type(module) is nn.Linear:
        yield "forward", _method(linear_forward, module, "forward"), "product with weights"
    elif name.endswith("RMSNormGated") and hasattr(module, "variance_epsilon"):
        yield "forward", _method(_gated_norm, module, "forward"), "gated norm"
    elif name.endswith("RMSNorm") and (offset := _offset_of(module)) is not None:
        yield "_isomer_offset", offset, ""
        yield "forward", _method(_plain_norm, module, "forward"), "norm"
    elif name == "RecurrentGemmaRglru":
        yield "_rnn_scan", _method(_rnn_scan, module, "_rnn_scan"), "RG-LRU"
    elif name == "MiniMaxLightningAttention":
        yield "forward", _method(_lightning, module, "forward"), "lightning attention"
    elif name == "xLSTMBackend":
        yield "forward", _method(_mlstm_backend, module, "forward"), "mLSTM"
    elif type(module).__module__.startswith("transformers."):
        for key in dict.fromkeys(key for own in type(module).__mro__ for key, x in vars(own).items() if callable(x)):
            if key.startswith("__") or not (made := _rebound(getattr(type(module), key))):
                continue
            yield key, _method(made[0], module, key), ", ".join(sorted(made[1]))


@dataclass
class Report:
    """What accelerate() replaced, by the names of modules, and what it left as it is: classes with weights, and how many."""

    replaced: dict[str, str] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __str__(self):
        counts = Counter(self.replaced.values())
        lines = [f"replaced {count} x {what}" for what, count in counts.items()] or ["replaced nothing"]
        lines.append("left " + (", ".join(f"{count} x {name}" for name, count in self.left.items()) or "nothing"))
        return "\n".join(lines + self.notes)

    __repr__ = __str__

    def _repr_html_(self):
        return "<pre>" + str(self).replace("<", "&lt;") + "</pre>"


_STATE = "_isomer_before"


def _takes_from_registry(module: nn.Module) -> bool:
    forward = type(module).forward
    while hasattr(forward, "__wrapped__"):
        forward = forward.__wrapped__
    return "ALL_ATTENTION_FUNCTIONS" in getattr(getattr(forward, "__code__", None), "co_names", ())


def accelerate(model: nn.Module, *, products: bool | None = None) -> Report:
    """Makes a model of transformers use Isomer's laws on the CPU: forward, backward and with its cache. -> what was replaced and what
    was left. restore(model) undoes it.

    Gated DeltaNet (qwen3_next, qwen3_5, olmo_hybrid), Kimi Delta Attention, Mamba and Mamba-2 and their hybrids, RG-LRU, lightning
    attention, mLSTM, with the short convolutions and gated norms beside them; softmax attention of every model that goes through the
    registry of attention functions; with `products` (None: where PyTorch's are slow, on CPUs not Intel's) nn.Linear on many rows.
    """
    if not isinstance(model, nn.Module):
        raise ValueError(f"accelerate: expected a model of PyTorch, got {type(model).__name__}")
    restore(model)
    report, before = Report(), {"modules": [], "attention": None}
    changed: dict[int, list[str]] = {}
    for name, module in model.named_modules():
        for key, value, what in list(_changes(module, products_are_slow() if products is None else products)):
            if key in vars(module):
                continue
            object.__setattr__(module, key, value)
            before["modules"].append((module, key))
            changed.setdefault(id(module), []).extend([what] if what else [])
        if type(module).__name__ == "RecurrentGemmaRecurrentBlock":
            object.__setattr__(module.conv_1d, "forward", _method(_cut_conv, module.conv_1d, "forward"))
            before["modules"].append((module.conv_1d, "forward"))
            changed[id(module.conv_1d)] = ["short convolution"]
        if id(module) in changed:
            report.replaced[name] = ", ".join(changed[id(module)])
    attention = getattr(getattr(model, "config", None), "_attn_implementation", None)
    through = [name for name, module in model.named_modules() if _takes_from_registry(module)]
    if through and attention not in (None, "isomer"):
        softcap = getattr(model.config.get_text_config(), "attn_logit_softcapping", None)
        if softcap is not None:
            report.notes.append("left attention as it is: its logits are capped by tanh, which the law does not have")
        else:
            register_attention()
            model.set_attn_implementation("isomer")
            before["attention"] = attention
            report.replaced |= dict.fromkeys(through, "attention")
    for name, module in model.named_modules():
        # Weights of a convolution are read by the layer around it.
        read = isinstance(module, nn.Conv1d) and "convolution" in report.replaced.get(name.rpartition(".")[0], "")
        if name not in report.replaced and not read and next(module.parameters(recurse=False), None) is not None:
            report.left[type(module).__name__] = report.left.get(type(module).__name__, 0) + 1
    object.__setattr__(model, _STATE, before)
    return report


def restore(model: nn.Module) -> None:
    """Undoes accelerate(model); does nothing to a model that is as it was."""
    before = vars(model).get(_STATE)
    if before is None:
        return
    for module, key in before["modules"]:
        if key in vars(module):
            object.__delattr__(module, key)
    if before["attention"] is not None:
        model.set_attn_implementation(before["attention"])
    object.__delattr__(model, _STATE)
