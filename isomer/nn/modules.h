#pragma once
// The parts of a model beside its mixers: each declares its parameters once and is then a function of a value.
//
//   const Linear<float> head(parameters, "head", 256, 1000, {.bias = true});     // parameters head.weight, head.bias
//   const Var<float> y = head(tape, x);                                           // x [B, T, 1, 256] → y [B, T, 1, 1000]
//
// A module holds handles into the store, so it is cheap to copy and lives no longer than the store. Weights start normal with
// deviation 0.02 unless said, biases at 0, gains at 1.
#include <string>

#include "isomer/autograd/tape.h"
#include "isomer/kernels/elementwise/unary.h"
#include "isomer/kernels/norm/norm.h"
#include "isomer/nn/parameters.h"

namespace isomer {

/// What every weight starts with if nothing else is said (Radford et al. 2019).
inline constexpr double kDeviation = 0.02;

template <class T>
class Linear {
 public:
  struct Options {
    bool bias = false;
    graph::Init weight = graph::normal(kDeviation);
  };
  Linear(Parameters<T>& parameters, const std::string& name, Index inputs, Index outputs, const Options& options = {});
  [[nodiscard]] Var<T> operator()(Tape<T>& tape, Var<T> x) const;

 private:
  Var<T> weight_, bias_;
};

/// Over three vectors, one before and one behind each, zeros outside; of every stride-th.
template <class T>
class Convolution {
 public:
  /// NAME.weight [outputs, 3 · inputs], the three of a channel beside each other, and NAME.bias.
  Convolution(Parameters<T>& parameters, const std::string& name, Index inputs, Index outputs, Index stride);
  /// x [B, T, 1, inputs] → y [B, ⌈T / stride⌉, 1, outputs]
  [[nodiscard]] Var<T> operator()(Tape<T>& tape, Var<T> x) const;

 private:
  Linear<T> linear_;
  Index stride_;
};

/// Over the last axis, with a gain; layer norm has a bias too.
template <class T>
class NormLayer {
 public:
  NormLayer(Parameters<T>& parameters, const std::string& name, Index width, const NormOptions& options = {});
  [[nodiscard]] Var<T> operator()(Tape<T>& tape, Var<T> x) const;

 private:
  NormOptions options_;
  Var<T> weight_, bias_;
};

/// A vector for each of `vocabulary` ids; weight() is also the output projection of a model that ties both.
template <class T>
class Embedding {
 public:
  Embedding(Parameters<T>& parameters, const std::string& name, Index vocabulary, Index width,
            const graph::Init& init = graph::normal(kDeviation));
  /// ids [B, T] → [B, T, 1, width]
  [[nodiscard]] Var<T> operator()(Tape<T>& tape, View<const std::int64_t, 2> ids) const;
  [[nodiscard]] Var<T> weight() const { return weight_; }

 private:
  Var<T> weight_;
};

/// channel_mix is a graph (mixers/channel_mix.h), for it remembers a token.
enum class MlpKind : std::uint8_t { none, gelu, swiglu, gelu_erf, geglu, channel_mix };
[[nodiscard]] std::string_view name_of(MlpKind kind);
/// Throws Error naming the nearest when there is none of that name.
[[nodiscard]] MlpKind mlp_named(std::string_view name);
/// What is applied to the hidden numbers: to all, or to those of the gate, which multiply the others.
struct MlpActivation {
  Unary function = Unary::identity;
  bool gated = false;
};
[[nodiscard]] MlpActivation activation_of(MlpKind kind);

struct MlpOptions {
  MlpKind kind = MlpKind::gelu;
  Index hidden = 0;  // 0: 4 · width; with a gate 8/3 · width, rounded up to a multiple of 32: as many parameters
  bool bias = false;
  double deviation = kDeviation;       // of up and gate
  double down_deviation = kDeviation;  // of the projection onto the residual stream; often smaller in deep models
  double rest = 1;                     // layers from here on, as a part of all: how channel_mix starts
};
[[nodiscard]] Index hidden_size(const MlpOptions& options, Index width);

/// gelu, gelu_erf (exact): down(gelu(up x)); swiglu, geglu: down(f(gate x) ∘ up x), f = SiLU or GELU, gate and up in one product.
template <class T>
class Mlp {
 public:
  Mlp(Parameters<T>& parameters, const std::string& name, Index width, const MlpOptions& options = {});
  [[nodiscard]] Var<T> operator()(Tape<T>& tape, Var<T> x) const;

 private:
  MlpActivation activation_;
  Var<T> up_, up_bias_;  // with a gate: those of gate and up below each other
  Linear<T> down_;
};

extern template class Linear<float>;
extern template class Linear<double>;
extern template class Convolution<float>;
extern template class Convolution<double>;
extern template class NormLayer<float>;
extern template class NormLayer<double>;
extern template class Embedding<float>;
extern template class Embedding<double>;
extern template class Mlp<float>;
extern template class Mlp<double>;

}  // namespace isomer
