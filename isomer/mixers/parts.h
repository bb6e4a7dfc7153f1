#pragma once
// What several presets are made of. A preset that shares nothing with others uses the builder alone.
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "isomer/mixers/builder.h"

namespace isomer::parts {

/// x W of `heads` heads; its name in equations is that of the weight.
[[nodiscard]] Value project(Builder& m, std::string_view name, Index heads, Index size, graph::Linear options = {});

/// f(x W + b), one number for each head.
[[nodiscard]] Value head_gate(Builder& m, std::string_view name, Index heads, Unary f);

/// Reads the option norm_eps, what the preset's norm adds under its root; `whose` says where the default is from.
[[nodiscard]] double norm_eps(Builder& m, double fallback, std::string_view whose);
/// That of the layers of flash-linear-attention: their own default, which their models set to 1e-6.
[[nodiscard]] double fla_norm_eps(Builder& m);

/// o, flat, times f(x W + b), a gate of each channel from the token itself.
[[nodiscard]] Value gated(Builder& m, Unary f, Value o, graph::Linear options = {});

/// Ends the mixer with a projection to the width.
void output(Builder& m, Value o, graph::Linear options = {});

/// What stands in place of softmax's denominator, and the gates and norms around it (Mongaras & Larson 2025, arXiv 2507.23632:
/// the variants of their code; most of them have clamp=5). From sums Σ_s w_ts v_s:
///   denominator  sum         Σ w v / Σ w
///                clamp       Σ w v / max(Σ w, floor)
///                detach      Σ w v / (max(Σ w, floor) + denominator_eps), without a gradient through it
///                cumulative  Σ w v / max(1, Σ_s e^{g_s}), g_s of each key alone
///                count       Σ w v / t
///                none        Σ w v
///   norm         l2, l2-size (times the size of a head), rms, layer: of each head
///   in_gate      a sigmoid of each token on its value
///   out_gate     a sigmoid of each token on its output, before or after the norm
struct Readout {
  std::string_view denominator = "sum", norm = "none", out_gate = "none";
  double floor = 1;
};

/// What sums can be had with: attention's normalisers; linear attention has sum and none.
enum class Sums { sum, none, count, gate, l2, rms, layer };

struct Summed {
  Index heads = 1;              // of queries
  bool laws_normalise = false;  // does the law offer all of Sums?
  bool positive = true;         // are the weights never negative?
  bool causal = true;
  std::function<Value(Value v, Sums kind, Value gate, double eps)> law;  // eps: of a norm
};

/// Reads the options and computes it.
[[nodiscard]] Value read_out(Builder& m, Value v, const Readout& fallback, const Summed& summed);

/// Reads the option clamp of attention's logits.
[[nodiscard]] double logit_clamp(Builder& m);

/// Softmax attention and its relatives.
struct AttentionMixer {
  AttentionOptions options = {};
  Readout readout = {};
  std::function<Value(Value)> feature = {};  // of queries and keys, after their positions
};
void attention_mixer(Builder& m, const AttentionMixer& what);

/// Linear attention with a feature map of queries and keys.
struct LinearMixer {
  std::function<Value(Value in, std::string_view name)> feature;  // name: "q" or "k"
  std::function<Value(Value v)> value = {};                       // if values change too
  bool positive = true;                                           // are features never negative?
  double scale = 1;                                               // of the weights
  double eps = 0;                                                 // added to the denominator
  double clamp = std::numeric_limits<double>::infinity();         // the largest weight
  Readout readout = {};
  Builder::HeadSizes sizes;
  Value log_decay = {}, log_input = {};
  bool of_whole = false;  // do features depend on all tokens?
  // The last so many heads are softmax attention in blocks of so many tokens (attention.h).
  Index local_heads = 0, block = 0;
};
/// Declares positions and head sizes, which feature maps need.
[[nodiscard]] Builder::HeadSizes linear_sizes(Builder& m, const Builder::HeadDefaults& fallback = {});
void linear_mixer(Builder& m, const LinearMixer& what);

/// A short convolution with SiLU, or SiLU alone when width is 0.
[[nodiscard]] Value short_convolution(Builder& m, std::string_view name, Value in, Index width, bool bias = false);

/// The xLSTM layers: exponential or sigmoid input gates (mlstm, mlstm-sig).
enum class InputGate { exponential, sigmoid };
void mlstm_mixer(Builder& m, InputGate kind);

/// q, k and v of the delta rule through convolutions and SiLU, and beta; declares conv and negative. Values may have more heads
/// than keys, which then serve several.
struct DeltaInputs {
  Value q, k, v, beta;
};
[[nodiscard]] DeltaInputs delta_inputs(Builder& m, const Builder::HeadSizes& sizes, Index value_heads = 0);

/// The bias of steps: softplus of it is log-uniform from 0.001 to 0.1.
[[nodiscard]] inline graph::Init steps() { return {.kind = graph::Init::Kind::softplus_inverse, .a = 1e-3, .b = 0.1}; }
/// -e^A softplus(step): the log decay of Mamba-2 and its followers; A = log of uniform numbers from `least` to 16.
[[nodiscard]] Value decay_of_steps(Builder& m, Value step, Index heads, double least);

/// A linear state space in continuous time, dh/dt = A h + u, seen at steps (zero-order hold): all values are parameters' own.
struct Discrete {
  Value log_decay = {}, angle = {};  // of exp(step A)
  Value real = {}, imag = {};        // (exp(step A) - 1) / A, what an input is multiplied by
};
/// A = -1/2 + i w at the start, of `heads` systems with `size` complex states, w given or pi n (S4D-Lin); one step for each head
/// or state, log-uniform from 0.001 to 0.1.
struct Systems {
  Index heads = 1, size = 1;
  bool step_of_head = true;
  std::vector<double> frequencies = {};
};
/// The imaginary parts above 0 of the eigenvalues of HiPPO-N, the normal part of HiPPO-LegS, with 2 size states.
[[nodiscard]] std::vector<double> hippo_frequencies(Index size);
[[nodiscard]] Discrete discretised(Builder& m, const Systems& what);

/// y + d x, d learned: what a state space leaves to the input itself.
[[nodiscard]] Value plus_input(Builder& m, Value y);

/// (a W + b) times sigmoid(a W' + b') of a = GELU(y), exact (gelu_erf) or not, to the width; ends the mixer.
void output_glu(Builder& m, Value y, Unary gelu);

/// How RWKV's matrices start, of gain `gain`; its output starts as 0, its group norm with ((l + 1) / L)^0.7 in layer l of L.
[[nodiscard]] inline graph::Init rwkv_matrix(double gain) { return {.kind = graph::Init::Kind::semi_orthogonal, .a = gain}; }
[[nodiscard]] graph::Normalise rwkv_norm(Builder& m);

/// (n / width)^power: how RWKV spreads what channels start with.
[[nodiscard]] std::vector<double> channel_powers(Index width, double power);

/// x + (shift(x) - x) mu: RWKV's mix of a token with the one before.
[[nodiscard]] Value token_shift(Builder& m, Value x, Value difference, Value mu);

/// The quasi LSTM of the Dynamical Systems Framework; `log_forget` makes the decay of f's projection.
void qlstm_mixer(Builder& m, const std::function<Value(Value)>& log_forget);

}  // namespace isomer::parts
