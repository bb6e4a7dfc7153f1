#include "isomer/autograd/loss.h"

#include <cmath>

#include "isomer/autograd/op_views.h"
#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/elementwise/sum.h"
#include "isomer/kernels/gemm/gemm.h"
#include "isomer/laws/layout.h"

namespace isomer::ops {

namespace {
/// Room for the gradient of an input, in its shape; absent if nobody will ask for it.
template <class T>
View<T, 4> waiting(Tape<T>& tape, Var<T> input) {
  if (!tape.recording() || !input.wanted()) return {};
  return contiguous(tape.template keep<T>(input.value.size()), input.shape());
}

template <class T>
void add_waiting(Tape<T>& back, View<const T, 4> gradient, double scale, Var<T> input) {
  if (const auto into = back.target(input); into.present())
    sum_to<T>({.x = gradient, .scale = scale}, into.view, into.mode, back.context());
}

/// [B, T, 1, D] as [B·T, D]: in place, or a copy where sequences are not evenly spaced.
template <class T>
View<const T, 2> all_rows(View<const T, 4> x, Context& context) {
  const auto& [B, L, H, D] = x.shape;
  if (B == 1 || x.stride[0] == L * x.stride[1]) return {x.data, {B * L, D}, {x.stride[1], x.stride[3]}};
  const View<T, 4> dense = contiguous(context.workspace().template take<T>(x.size()), {B, L, 1, D});
  copy<T>(x, dense, context);
  return {dense.data, {B * L, D}, {D, 1}};
}

template <class T>
View<T, 1> vector(View<T, 4> x) {
  return {x.data, {x.shape[3]}, {x.stride[3]}};
}

/// The numbers of a weight as T: a copy of one that is kept in another type, for the kernel reads no other.
template <class T>
View<const T, 2> widened(Var<T> weight, Workspace& scratch) {
  if (!weight.stored()) return matrix(View<const T, 4>(weight.value));
  const View<T, 4> all = contiguous(scratch.take<T>(size_of(weight.shape())), weight.shape());
  weight.with_numbers([&]<class W>(const View<const W, 4>& x) {
    if constexpr (!std::is_same_v<W, T>)
      each_element(x.shape, [&](const auto& i) { *element(all, i) = T(to_float(*element(x, i))); });
  });
  return matrix(View<const T, 4>(all));
}

/// The matrix [T, D] of a head; heads share the matrices of fewer.
template <class T>
View<T, 2> head_of(View<T, 4> x, Index b, Index h, Index heads) {
  return {x.at(b, 0, h / (heads / x.shape[2])), {x.shape[1], x.shape[3]}, {x.stride[1], x.stride[3]}};
}

/// One query of attention_divergence.
struct DivergenceRow {
  const AttentionOptions& options;
  Index t, keys;

  // Added to every weight, so that one that is 0 costs much and not everything.
  static constexpr double kFloor = 1e-8;

  [[nodiscard]] Index end() const { return options.direction == AttentionOptions::Direction::causal ? t + 1 : keys; }
  [[nodiscard]] bool sees(Index s) const { return options.window == 0 || std::abs(t - s) < options.window || s < options.sinks; }
  /// Returns the divergence and leaves `factor` times its gradient where the weights were.
  template <class T>
  double operator()(const T* logits, double scale, T* weights, double factor) const {
    double largest = -HUGE_VAL, all_a = 0, all_w = 0, divergence = 0;
    const auto weight = [&](Index s) { return double(weights[s]) + kFloor; };
    const auto logit = [&](Index s) { return std::min(scale * double(logits[s]), options.clamp); };
    for (Index s = 0; s < end(); ++s) {
      if (sees(s)) largest = std::max(largest, logit(s));
      all_w += weight(s);
    }
    const auto above = [&](Index s) { return logit(s) - largest; };
    for (Index s = 0; s < end(); ++s)
      if (sees(s)) all_a += std::exp(above(s));
    for (Index s = 0; s < end(); ++s) {
      const double log_a = above(s) - std::log(all_a), a = sees(s) ? std::exp(log_a) : 0;
      if (a > 0) divergence += a * (log_a - std::log(weight(s) / all_w));
      weights[s] = T(factor * (1 / all_w - a / weight(s)));
    }
    std::fill(weights + end(), weights + keys, T(0));
    return divergence;
  }
};
}  // namespace

template <class T>
Var<T> linear_cross_entropy(Tape<T>& tape, const CrossEntropyVars<T>& in, double softcap, LossResult* result) {
  const Index B = in.x.dim(0), L = in.x.dim(1), D = in.x.dim(3);
  check_shape("linear_cross_entropy", "x", in.x.shape(), {B, L, 1, D});
  check_shape("linear_cross_entropy", "labels", in.labels.shape, {B, L});
  const Var<T> x = in.x, weight = in.weight, bias = in.bias, loss = tape.make({1, 1, 1, 1}, {x, weight, bias});
  const View<T, 4> dx = waiting(tape, x), dweight = waiting(tape, weight), dbias = waiting(tape, bias);
  Workspace& scratch = tape.context().workspace();
  const Workspace::Scope scope(scratch);
  std::int64_t* labels = scratch.take<std::int64_t>(B * L);
  for (Index b = 0; b < B; ++b)
    for (Index t = 0; t < L; ++t) labels[b * L + t] = in.labels(b, t);
  tape.timed(Profile::Kind::product, [&] {
    const LossResult r = projected_cross_entropy<T>({.x = all_rows<T>(x.value, tape.context()),
                                                     .weight = widened(weight, scratch),
                                                     .bias = vector(View<const T, 4>(bias.value)),
                                                     .labels = {labels, {B * L}, {1}},
                                                     .softcap = softcap},
                                                    {.dx = {dx.data, {B * L, D}, {D, 1}},
                                                     .dweight = matrix(dweight),
                                                     .dbias = vector(dbias),
                                                     .predicted = {in.predicted, {B * L}, {1}}},
                                                    tape.context());
    loss.value.data[0] = T(r.mean);
    if (result != nullptr) *result = r;
  });
  tape.record({loss}, [=](Tape<T>& back) {
    const double scale = double(*back.arrived(loss).data);
    add_waiting<T>(back, dx, scale, x);
    add_waiting<T>(back, dweight, scale, weight);
    add_waiting<T>(back, dbias, scale, bias);
  });
  return loss;
}

template <class T>
Var<T> mean_squared_error(Tape<T>& tape, Var<T> x, Var<T> target) {
  const Var<T> loss = tape.make({1, 1, 1, 1}, {x, target});
  const View<T, 4> dx = waiting(tape, x.wanted() ? x : target);
  loss.value.data[0] = T(mean_squared_error<T>(x.value, target.value, dx, 1, tape.context()));
  tape.record({loss}, [=](Tape<T>& back) {
    const double scale = double(*back.arrived(loss).data);
    add_waiting<T>(back, dx, scale, x);
    add_waiting<T>(back, dx, -scale, target);
  });
  return loss;
}

template <class T>
Var<T> attention_divergence(Tape<T>& tape, const DivergenceVars<T>& in, const AttentionOptions& options) {
  const Var<T> q = in.features_q, k = in.features_k, loss = tape.make({1, 1, 1, 1}, {q, k});
  const auto [B, L, H, F] = q.shape();
  const Index S = k.dim(1);
  const bool causal = options.direction == AttentionOptions::Direction::causal;
  check_shape("attention_divergence", "features of k", k.shape(), {B, causal ? L : std::min(S, L), H, F});
  check_shape("attention_divergence", "q", in.q.shape, {B, L, in.q.shape[2], in.k.shape[3]});
  check_shape("attention_divergence", "k", in.k.shape, {B, S, in.k.shape[2], in.k.shape[3]});
  const double scale = options.scale.value_or(1 / std::sqrt(double(in.k.shape[3]))), factor = 1 / double(B * L * H);
  const View<T, 4> dq = waiting(tape, q), dk = waiting(tape, k);
  Context& context = tape.context();
  const Workspace::Scope scope(context.workspace());
  const View<T, 2> logits = contiguous(context.workspace().template take<T>(L * S), {L, S});
  const View<T, 2> weights = contiguous(context.workspace().template take<T>(L * S), {L, S});
  double* rows = context.workspace().template take<double>(L);
  double sum = 0;
  for (Index i = 0; i < B * H; ++i) {
    const Index b = i / H, h = i % H;
    const View<const T, 2> own_q = head_of<const T>(q.value, b, h, H), own_k = head_of<const T>(k.value, b, h, H);
    matmul(head_of(in.q, b, h, H), transposed(head_of(in.k, b, h, H)), logits, context);
    matmul(own_q, transposed(own_k), weights, context);
    context.parallel(L, [&](Index t, Workspace&) {
      rows[t] = DivergenceRow{options, t, S}(logits.at(t), scale, weights.at(t), factor);
    });
    for (Index t = 0; t < L; ++t) sum += rows[t];
    const View<const T, 2> gradient = weights;
    if (dq.present()) matmul(gradient, own_k, head_of(dq, b, h, H), context);
    if (dk.present()) matmul(transposed(gradient), own_q, head_of(dk, b, h, H), context);
  }
  loss.value.data[0] = T(sum * factor);
  tape.record({loss}, [=](Tape<T>& back) {
    const double arrived = double(*back.arrived(loss).data);
    add_waiting<T>(back, dq, arrived, q);
    add_waiting<T>(back, dk, arrived, k);
  });
  return loss;
}

template Var<float> attention_divergence(Tape<float>&, const DivergenceVars<float>&, const AttentionOptions&);
template Var<double> attention_divergence(Tape<double>&, const DivergenceVars<double>&, const AttentionOptions&);
template Var<float> linear_cross_entropy(Tape<float>&, const CrossEntropyVars<float>&, double, LossResult*);
template Var<double> linear_cross_entropy(Tape<double>&, const CrossEntropyVars<double>&, double, LossResult*);
template Var<float> mean_squared_error(Tape<float>&, Var<float>, Var<float>);
template Var<double> mean_squared_error(Tape<double>&, Var<double>, Var<double>);

}  // namespace isomer::ops
