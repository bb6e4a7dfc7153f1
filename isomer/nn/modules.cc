#include "isomer/nn/modules.h"

#include <array>
#include <cmath>

#include "isomer/autograd/elementwise.h"
#include "isomer/autograd/embedding.h"
#include "isomer/autograd/linear.h"
#include "isomer/autograd/norm.h"
#include "isomer/autograd/tokens.h"
#include "isomer/autograd/views.h"
#include "isomer/base/error.h"
#include "isomer/base/suggest.h"

namespace isomer {

namespace {
// In the order of MlpKind.
constexpr std::array<std::string_view, 6> kMlps{"none", "gelu", "swiglu", "gelu-erf", "geglu", "channel-mix"};
constexpr std::array<MlpActivation, 6> kActivations{
    {{}, {Unary::gelu}, {Unary::silu, true}, {Unary::gelu_erf}, {Unary::gelu, true}, {}}};

ParameterSpec bias_spec(std::string name, Index size) {
  return {.name = std::move(name), .shape = {size}, .init = graph::constant(0), .decay = Decay::no};
}

/// Read by products or by look-ups alone.
ParameterSpec matrix_spec(std::string name, std::vector<Index> shape, const graph::Init& init) {
  return {.name = std::move(name), .shape = std::move(shape), .init = init, .reader = Reader::products};
}
}  // namespace

template <class T>
Linear<T>::Linear(Parameters<T>& parameters, const std::string& name, Index inputs, Index outputs, const Options& options)
    : weight_(parameters.add(matrix_spec(name + ".weight", {outputs, inputs}, options.weight)).var) {
  if (options.bias) bias_ = parameters.add(bias_spec(name + ".bias", outputs)).var;
}

template <class T>
Var<T> Linear<T>::operator()(Tape<T>& tape, Var<T> x) const {
  return ops::linear(tape, x, weight_, bias_);
}

template <class T>
Convolution<T>::Convolution(Parameters<T>& parameters, const std::string& name, Index inputs, Index outputs, Index stride)
    : linear_(parameters, name, 3 * inputs, outputs, {.bias = true, .weight = graph::normal(1 / std::sqrt(3 * double(inputs)))}),
      stride_(stride) {}

template <class T>
Var<T> Convolution<T>::operator()(Tape<T>& tape, Var<T> x) const {
  return linear_(tape, ops::neighbours(tape, x, stride_));
}

template <class T>
NormLayer<T>::NormLayer(Parameters<T>& parameters, const std::string& name, Index width, const NormOptions& options)
    : options_(options),
      weight_(parameters.add({.name = name + ".weight", .shape = {width}, .init = graph::constant(1), .decay = Decay::no}).var) {
  if (options.kind == Norm::layer) bias_ = parameters.add(bias_spec(name + ".bias", width)).var;
}

template <class T>
Var<T> NormLayer<T>::operator()(Tape<T>& tape, Var<T> x) const {
  return ops::norm(tape, x, options_, weight_, bias_);
}

template <class T>
Embedding<T>::Embedding(Parameters<T>& parameters, const std::string& name, Index vocabulary, Index width,
                        const graph::Init& init)
    : weight_(parameters.add(matrix_spec(name + ".weight", {vocabulary, width}, init)).var) {}

template <class T>
Var<T> Embedding<T>::operator()(Tape<T>& tape, View<const std::int64_t, 2> ids) const {
  return ops::embedding(tape, ids, weight_);
}

std::string_view name_of(MlpKind kind) { return kMlps[std::size_t(kind)]; }

MlpKind mlp_named(std::string_view name) { return MlpKind(position_of("mlp", name, kMlps)); }

MlpActivation activation_of(MlpKind kind) { return kActivations[std::size_t(kind)]; }

Index hidden_size(const MlpOptions& options, Index width) {
  if (options.hidden > 0) return options.hidden;
  return activation_of(options.kind).gated ? round_up(ceil_div(8 * width, 3), 32) : 4 * width;
}

template <class T>
Mlp<T>::Mlp(Parameters<T>& parameters, const std::string& name, Index width, const MlpOptions& options)
    : activation_(activation_of(options.kind)),
      down_(parameters, name + ".down", hidden_size(options, width), width,
            {.bias = options.bias, .weight = graph::normal(options.down_deviation)}) {
  ISOMER_ASSERT(options.kind != MlpKind::none && options.kind != MlpKind::channel_mix, "a block has no MLP, or a graph");
  const Index hidden = hidden_size(options, width);
  std::vector<ParameterSpec> weights, biases;
  const auto add = [&](const std::string& part) {
    weights.push_back(matrix_spec(name + part + ".weight", {hidden, width}, graph::normal(options.deviation)));
    biases.push_back(bias_spec(name + part + ".bias", hidden));
  };
  if (activation_.gated) add(".gate");
  add(".up");
  up_ = parameters.add_block(std::move(weights));
  if (options.bias) up_bias_ = parameters.add_block(std::move(biases));
}

template <class T>
Var<T> Mlp<T>::operator()(Tape<T>& tape, Var<T> x) const {
  const Var<T> up = ops::linear(tape, x, up_, up_bias_);
  if (!activation_.gated) return down_(tape, ops::unary(tape, activation_.function, up));
  const Index hidden = up.dim(3) / 2;
  std::array<Var<T>, 2> halves;
  ops::split<T>(tape, up, std::array<Index, 2>{hidden, hidden}, halves);
  return down_(tape, ops::gated(tape, activation_.function, halves[0], halves[1]));
}

template class Linear<float>;
template class Linear<double>;
template class Convolution<float>;
template class Convolution<double>;
template class NormLayer<float>;
template class NormLayer<double>;
template class Embedding<float>;
template class Embedding<double>;
template class Mlp<float>;
template class Mlp<double>;

}  // namespace isomer
