#include "isomer/nn/mixer_run.h"

#include "isomer/autograd/add_product.h"
#include "isomer/autograd/conv.h"
#include "isomer/autograd/elementwise.h"
#include "isomer/autograd/linear.h"
#include "isomer/autograd/norm.h"
#include "isomer/autograd/psi.h"
#include "isomer/autograd/rotary.h"
#include "isomer/autograd/tokens.h"
#include "isomer/autograd/views.h"

namespace isomer {

template <class T>
Var<T> MixerRun<T>::operator()() {
  const std::vector<graph::Node>& nodes = mixer_.graph_.nodes;
  for (at_ = 0; at_ < nodes.size(); ++at_) {
    if (mixer_.inside_[at_]) continue;
    node_ = &nodes[at_];
    const int of = mixer_.product_of_[at_];
    if (of < 0)
      mixer_.values_[at_] = std::visit([&](const auto& work) { return run(work); }, node_->work);
    else if (mixer_.products_[std::size_t(of)].nodes[0] == int(at_))
      product(mixer_.products_[std::size_t(of)]);
  }
  return mixer_.values_.back();
}

template <class T>
void MixerRun<T>::product(typename Mixer<T>::Product& product) {
  const Var<T> all = linear(tape_, heads(in(0), 1), product.weights.weight, product.weights.bias);
  if (product.nodes.size() == 1)
    product.pieces[0] = all;
  else
    split<T>(tape_, all, product.sizes, product.pieces);
  for (std::size_t i = 0; i < product.nodes.size(); ++i) mixer_.values_[std::size_t(product.nodes[i])] = product.pieces[i];
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Linear&) {
  return linear(tape_, heads(in(0), 1), weights().weight, weights().bias);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::HeadLinear& w) {
  // So that a row of zeros stays one.
  constexpr double kShortest = 1e-12;
  const Var<T> weight = w.unit_rows ? norm(tape_, weights().weight, {.kind = Norm::l2, .eps = kShortest}) : weights().weight;
  return head_linear(tape_, in(0), weight, weights().bias);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Convolution& w) {
  const Var<T> y = conv(tape_, in(0), weights().weight, weights().bias, kept<3>());
  return w.silu ? unary(tape_, Unary::silu, y) : y;
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Shift&) {
  return shift(tape_, in(0), kept<3>());
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Map&) {
  const auto [x, f, options] = mixer_.mapped(int(at_));
  return unary(tape_, f, x, options);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Combine& w) {
  const int joined = mixer_.joined_[at_];
  if (joined < 0) return binary(tape_, w.function, in(0), in(1));
  const std::vector<int>& factors = mixer_.graph_.nodes[std::size_t(joined)].inputs;
  const Var<T> other = in(node_->inputs[0] == joined ? 1 : 0);
  return add_product(tape_, other, mixer_.values_[std::size_t(factors[0])], mixer_.values_[std::size_t(factors[1])]);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Gate& w) {
  return gated(tape_, w.function, in(0), in(1));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Heads&) {
  return heads(in(0), node_->heads);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Normalise& w) {
  return norm(tape_, in(0), {.kind = w.kind, .eps = w.eps}, weights().weight, weights().bias);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Rotary& w) {
  return rotary(tape_, in(0), RotaryPositions{.base = w.base, .offset = position_});
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Rotate&) {
  return rotary(tape_, in(0), in(1));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::RunningSum& w) {
  return w.angle ? running_angle(tape_, in(0), kept_sum()) : running_sum(tape_, in(0), kept_sum());
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Mean& w) {
  return w.causal ? running_mean(tape_, in(0), kept_sum(), position_) : mean(tape_, in(0));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Concat&) {
  mixer_.parts_.clear();
  for (const int input : node_->inputs)
    mixer_.parts_.push_back(mixer_.inside_[std::size_t(input)] ? mixer_.mapped(input)
                                                               : Mapped<T>{mixer_.values_[std::size_t(input)]});
  return concat<T>(tape_, mixer_.parts_);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Slice& w) {
  return slice(in(0), w.begin, node_->size);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Softmax&) {
  return softmax(tape_, in(0));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::SquareSum&) {
  return square_sum(tape_, in(0));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::TaylorFeatures&) {
  return taylor_features(tape_, in(0));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Position&) {
  return position(tape_, position_, tokens());
}

template <class T>
Var<T> MixerRun<T>::run(const graph::PositionTable& w) {
  require(position_ + tokens() <= w.length, "mixer", "expected at most ", w.length, " tokens (learned positions), got ",
          position_ + tokens());
  return position_table(weights().weight, position_, tokens());
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Psi& w) {
  const auto& p = weights();
  return psi<T>(tape_, in(0), {p.weight, p.bias, p.output_weight, p.output_bias}, {.positive = w.positive});
}

template <class T>
Var<T> MixerRun<T>::run(const graph::LocalSum& w) {
  return local_sum(tape_, in(0), in(1), w.width, kept<3>());
}

template <class T>
Var<T> MixerRun<T>::run(const graph::LocalImageSum& w) {
  return local_image_sum(tape_, in(0), in(1), w.rows, w.columns);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Detach&) {
  return detach(tape_, in(0));
}

template class MixerRun<float>;
template class MixerRun<double>;

}  // namespace isomer
