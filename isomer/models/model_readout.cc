// What is read off a model's last layer: labels of tokens or of sequences, vectors, a loss.
#include <algorithm>
#include <cmath>

#include "isomer/autograd/elementwise.h"
#include "isomer/autograd/linear.h"
#include "isomer/autograd/loss.h"
#include "isomer/autograd/tokens.h"
#include "isomer/autograd/views.h"
#include "isomer/models/model.h"
#include "isomer/models/readout.h"

namespace isomer {

namespace {
/// [1, tokens, 1, width]: sines and cosines of positions (Vaswani et al. 2017).
template <class T>
Var<T> sine_positions(Tape<T>& tape, Index tokens, Index width) {
  const Var<T> y = tape.make({1, tokens, 1, width}, {});
  for (Index t = 0; t < tokens; ++t)
    for (Index i = 0; i < width; ++i) {
      const double angle = double(t) * std::pow(1e4, -double(i - i % 2) / double(width));
      y.value(0, t, 0, i) = T(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  return y;
}

/// Σ_t weight(length, t) x_t of every row.
template <class T, class F>
Var<T> weighed(Tape<T>& tape, Var<T> x, const ModelInput& in, F weight_of) {
  const Index tokens = x.dim(1), own = tokens - in.T;  // a class token is one of them
  const Var<T> weight = tape.make({in.B, tokens, 1, 1}, {});
  for (Index b = 0; b < in.B; ++b)
    for (Index t = 0; t < tokens; ++t)
      weight.value(b, t, 0, 0) = T(double(tokens) * weight_of(in.lengths[std::size_t(b)] + own, t));
  return ops::mean(tape, ops::multiply(tape, x, weight));
}

template <class T>
Var<T> mean_of(Tape<T>& tape, Var<T> x, const ModelInput& in) {
  if (in.lengths.empty()) return ops::mean(tape, x);
  return weighed(tape, x, in, [](Index length, Index t) { return t < length ? 1 / double(length) : 0; });
}

template <class T>
Var<T> last_tokens(Tape<T>& tape, Var<T> x, const ModelInput& in) {
  if (in.lengths.empty()) return last_token(x);
  return weighed(tape, x, in, [](Index length, Index t) { return t == length - 1 ? 1 : 0; });
}

/// With the gradient of what a pass contributes to the mean over all labels of a batch.
template <class T>
void seed_loss(Tape<T>& tape, Var<T> loss, Index count, const Pass& pass) {
  if (loss.wanted()) tape.seed(loss).data[0] = pass.count > 0 ? T(double(count) / pass.count) : T(1);
}

}  // namespace

template <class T>
Var<T> Model<T>::transformed(Tape<T>& tape, Var<T> x) const {
  if (head_hidden_) {
    const Var<T> y = (*head_hidden_)(tape, x);
    if (config_.head_activation == HeadActivation::none) return y;
    return ops::unary(tape, config_.head_activation == HeadActivation::relu ? Unary::relu : Unary::gelu_erf, y);
  }
  return transform_ ? transform_->norm(tape, ops::unary(tape, Unary::gelu_erf, transform_->linear(tape, x))) : x;
}

template <class T>
Var<T> Model<T>::projected(Tape<T>& tape, Var<T> x) const {
  const Var<T> y = ops::linear(tape, x, head_, head_bias_);
  return config_.logit_cap > 0 ? ops::unary(tape, Unary::softcap, y, {.a = config_.logit_cap}) : y;
}

template <class T>
Var<T> Model<T>::pooled(Tape<T>& tape, Var<T> x, const ModelInput& in) const {
  const Var<T> y = config_.pool == Pool::first  ? token_at(x, 0)
                   : config_.pool == Pool::last ? last_tokens(tape, x, in)
                                                : mean_of(tape, x, in);
  return pooler_ ? ops::unary(tape, Unary::tanh, (*pooler_)(tape, y)) : y;
}

template <class T>
Var<T> Model<T>::decoded(Tape<T>& tape, Var<T> x) const {
  Var<T> y = ops::add(tape, last_token(x), sine_positions(tape, x.dim(1), config_.width));
  for (const Decoder& layer : decoder_) y = ops::unary(tape, Unary::gelu, layer.linear(tape, layer.norm(tape, y)));
  return y;
}

template <class T>
ModelResult Model<T>::read_labels(Tape<T>& tape, Var<T> x, const ModelInput& in, const Pass& pass) const {
  const std::span predicted(tape.template keep<std::int64_t>(Index(in.labels.size())), in.labels.size());
  std::ranges::fill(predicted, -1);
  LossResult result;
  const Var<T> loss = ops::linear_cross_entropy<T>(tape,
                                                   {.x = x,
                                                    .weight = head_,
                                                    .bias = head_bias_,
                                                    .labels = contiguous(in.labels.data(), {x.dim(0), x.dim(1)}),
                                                    .predicted = predicted.data()},
                                                   config_.logit_cap, &result);
  seed_loss(tape, loss, result.count, pass);
  return {.loss = result.mean, .count = result.count, .correct = result.correct, .predicted = predicted};
}

template <class T>
ModelResult Model<T>::read_targets(Tape<T>& tape, Var<T> x, const ModelInput& in, const Pass& pass) const {
  const Shape4 shape{in.B, 1, 1, config_.outputs};
  const Var<T> y = ops::linear(tape, x, head_, head_bias_);
  const Var<T> loss = ops::mean_squared_error(tape, y, values(tape, in.targets, shape));
  seed_loss(tape, loss, in.B, pass);
  const std::span outputs(tape.template keep<float>(y.value.size()), in.targets.size());
  std::transform(y.value.data, y.value.data + y.value.size(), outputs.begin(), [](T number) { return float(number); });
  return {.loss = double(loss.value.data[0]), .count = in.B, .outputs = outputs};
}

template Var<float> Model<float>::transformed(Tape<float>&, Var<float>) const;
template Var<float> Model<float>::projected(Tape<float>&, Var<float>) const;
template Var<float> Model<float>::pooled(Tape<float>&, Var<float>, const ModelInput&) const;
template Var<float> Model<float>::decoded(Tape<float>&, Var<float>) const;
template ModelResult Model<float>::read_labels(Tape<float>&, Var<float>, const ModelInput&, const Pass&) const;
template ModelResult Model<float>::read_targets(Tape<float>&, Var<float>, const ModelInput&, const Pass&) const;
template Var<double> Model<double>::transformed(Tape<double>&, Var<double>) const;
template Var<double> Model<double>::projected(Tape<double>&, Var<double>) const;
template Var<double> Model<double>::pooled(Tape<double>&, Var<double>, const ModelInput&) const;
template Var<double> Model<double>::decoded(Tape<double>&, Var<double>) const;
template ModelResult Model<double>::read_labels(Tape<double>&, Var<double>, const ModelInput&, const Pass&) const;
template ModelResult Model<double>::read_targets(Tape<double>&, Var<double>, const ModelInput&, const Pass&) const;

}  // namespace isomer
