"""flash-linear-attention's models in plain torch: its own classes of layers and models, with every Triton kernel that they call
replaced by the package's naive function or, where there is none, by the formula. For tools/foreign-goldens."""
import torch
import torch.nn.functional as F


def rms(x, weight, eps):
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return y if weight is None else y * weight


def rms_norm(self, x, residual=None, prenorm=False, residual_in_fp32=False):
    x = x if residual is None else x + residual
    y = rms(x, self.weight, self.eps)
    return (y, x) if prenorm else y


def layer_norm(self, x, residual=None, prenorm=False, residual_in_fp32=False):
    x = x if residual is None else x + residual
    y = F.layer_norm(x, (x.shape[-1],), self.weight, self.bias, self.eps)
    return (y, x) if prenorm else y


def gated_norm(self, x, g, residual=None, prenorm=False, residual_in_fp32=False):
    return rms(x, self.weight, self.eps) * (F.silu(g) if self.activation in ("swish", "silu") else g.sigmoid())


def short_convolution(self, x, residual=None, mask=None, cache=None, output_final_state=False, cu_seqlens=None, **_):
    y = F.conv1d(F.pad(x.transpose(1, 2), (self.kernel_size[0] - 1, 0)), self.weight, self.bias, groups=self.groups).transpose(1, 2)
    return (F.silu(y) if self.activation else y), None


def causal_conv1d(x, weight, bias=None, activation=None, **_):
    y = F.conv1d(F.pad(x.transpose(1, 2), (weight.shape[-1] - 1, 0)), weight[:, None], bias, groups=weight.shape[0]).transpose(1, 2)
    return (F.silu(y) if activation else y), None


def rotary(self, q, k, seqlen_offset=0, cu_seqlens=None, max_seqlen=None):
    half = q.shape[-1] // 2
    angles = torch.arange(q.shape[1])[:, None] * self.base ** (-torch.arange(half) / half)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]

    def turn(x):
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
    return turn(q), turn(k)


def l2(x):
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def heads_first(f):
    """The naive functions of [B, H, T, D] on [B, T, H, D]."""
    return lambda *tensors: f(*(x.transpose(1, 2) for x in tensors))


def gla(q, k, v, gk=None, g=None, **_):
    from fla.ops.gla.naive import naive_recurrent_gla
    return naive_recurrent_gla(q, k, v, gk if gk is not None else g)


def retention(q, k, v, **_):
    from fla.ops.retention.naive import naive_retention
    return heads_first(naive_retention)(q, k, v).transpose(1, 2), None


def delta_rule(q, k, v, beta, use_qk_l2norm_in_kernel=False, **_):
    from fla.ops.delta_rule.naive import delta_rule_recurrence
    if use_qk_l2norm_in_kernel:
        q, k = l2(q), l2(k)
    return heads_first(delta_rule_recurrence)(q, k, v, beta)[0].transpose(1, 2), None


def gated_delta_rule(q, k, v, g, beta, A_log, dt_bias, allow_neg_eigval=False, **_):
    from fla.ops.gated_delta_rule.gate import naive_gdn_gate
    from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule
    q, k = (l2(x).repeat_interleave(v.shape[2] // x.shape[2], dim=2) for x in (q, k))
    beta = beta.sigmoid() * (2 if allow_neg_eigval else 1)
    return naive_recurrent_gated_delta_rule(q, k, v, beta, naive_gdn_gate(g, A_log, dt_bias))


def kda(q, k, v, g, beta, A_log, dt_bias, allow_neg_eigval=False, **_):
    from fla.ops.kda.gate import naive_kda_gate
    from fla.ops.kda.naive import naive_recurrent_kda
    beta = beta.sigmoid() * (2 if allow_neg_eigval else 1)
    return naive_recurrent_kda(l2(q), l2(k), v, naive_kda_gate(g, A_log, dt_bias), beta)


def rwkv7(r, w, k, v, a, b, scale, **_):
    from fla.ops.generalized_delta_rule.dplr.naive import dplr_recurrence
    scaled = r * (scale * r.shape[-1] ** 0.5)  # it divides by that itself
    return heads_first(dplr_recurrence)(scaled, k, v, a, b, w)[0].transpose(1, 2), None


def token_shift(x, cu_seqlens=None, **_):
    from fla.modules.token_shift import token_shift_ref
    return token_shift_ref(x, cu_seqlens), None


def group_norm(self, x):
    rows = x.unflatten(-1, (self.num_groups, -1))
    return F.layer_norm(rows, rows.shape[-1:], eps=self.eps).flatten(-2) * self.weight + self.bias


def rms_norm_linear(x, norm_weight, norm_bias, linear_weight, linear_bias, eps=1e-5, **_):
    return F.linear(rms(x, norm_weight, eps), linear_weight, linear_bias)


def patch():
    """Modules and layers of fla compute with these; call before a model is made."""
    import fla.modules
    import fla.modules.activations
    import fla.modules.mlp
    import fla.models.rwkv7.modeling_rwkv7 as rwkv7_model
    from fla.layers import delta_net, gated_deltanet, gla as gla_layer, hgrn2, kda as kda_layer, multiscale_retention, rwkv7 as rwkv7_layer
    from fla.ops.rwkv7 import fused_addcmul, fused_k_update, gate_output_correction
    fla.modules.RMSNorm.forward = rms_norm
    fla.modules.LayerNorm.forward = layer_norm
    fla.modules.FusedRMSNormGated.forward = gated_norm
    fla.modules.ShortConvolution.forward = short_convolution
    fla.modules.RotaryEmbedding.forward = rotary
    fla.modules.mlp.SwiGLULinear.forward = lambda self, x, y, weight, bias: F.linear(F.silu(x) * y, weight, bias)
    fla.modules.activations.ACT2FN["swish"] = F.silu
    gated_deltanet.causal_conv1d = causal_conv1d
    for layer, function, names in (
            (gla_layer, gla, ["chunk_gla", "fused_recurrent_gla"]),
            (hgrn2, gla, ["chunk_gla", "fused_recurrent_gla"]),
            (multiscale_retention, retention, ["chunk_retention", "fused_recurrent_retention"]),
            (delta_net, delta_rule, ["chunk_delta_rule", "fused_recurrent_delta_rule"]),
            (gated_deltanet, gated_delta_rule, ["chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule"]),
            (kda_layer, kda, ["chunk_kda", "fused_recurrent_kda"])):
        for name in names:
            assert hasattr(layer, name), name
            setattr(layer, name, function)
    hgrn2.swish, hgrn2.rms_norm_linear = F.silu, rms_norm_linear
    fla.modules.GroupNorm.forward = group_norm
    rwkv7_model.token_shift = rwkv7_layer.token_shift = token_shift
    rwkv7_layer.chunk_rwkv7, rwkv7_layer.l2_norm = rwkv7, l2
    rwkv7_layer.fused_addcmul_rwkv7, rwkv7_layer.fused_k_rwkv7 = fused_addcmul.torch_addcmul_rwkv7, fused_k_update.k_update_ref
    rwkv7_layer.gate_output_correction = gate_output_correction.gate_output_correction_ref
    fla.modules.activations.ACT2FN["sqrelu"] = lambda x: F.relu(x).square()
