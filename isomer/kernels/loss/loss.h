#pragma once
// Losses: a number and, because nothing else is needed for it, the gradient at once.
//
//   const ProjectedLoss<float> in{.x = x, .weight = w, .labels = labels};
//   const LossResult r = projected_cross_entropy<float>(in, {.dx = dx, .dweight = dw}, context);
//   // r.mean, r.count (labels that count), r.correct (of them, those whose logit is the largest)
//
// Cross-entropy: the mean of log Σ_v e^z_v − z_label over rows with a label; a negative label is ignored and its gradient is 0.
// Without any label the mean and all gradients are 0. Gradients are those of scale · mean. Of equal logits the first counts as
// the largest. Means are taken in double, in the order of the rows; the number of threads changes nothing.
#include <cstdint>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"

namespace isomer {

using Labels = View<const std::int64_t, 1>;

struct LossResult {
  double mean = 0;
  Index count = 0, correct = 0;
};

/// z = x · weightᵀ + bias, and softcap · tanh(z / softcap) if softcap > 0. x [N, D], weight [V, D], labels [N] below V.
template <class T>
struct ProjectedLoss {
  View<const T, 2> x, weight;
  View<const T, 1> bias = {};
  Labels labels;
  double softcap = 0;
};
/// What projected_cross_entropy writes; absent views are not computed.
template <class T>
struct ProjectedLossGradients {
  View<T, 2> dx = {}, dweight = {};
  View<T, 1> dbias = {};
  View<std::int64_t, 1> predicted = {};  // of every row with a label: the place of its largest logit
  Accumulate accumulate_x = Accumulate::set, accumulate_weight = Accumulate::set, accumulate_bias = Accumulate::set;
  double scale = 1;
};
/// The logits are never whole in memory: rows with a label are taken in blocks of at least 256, whose logits take at most 4
/// million numbers. Up to V = 16384 the cost is that of three matrix products, beyond that of four, for the logits of a block are
/// then computed twice; without gradients, of one. Arrays do not overlap.
template <class T>
LossResult projected_cross_entropy(const ProjectedLoss<T>& in, const ProjectedLossGradients<T>& out, Context& context);

/// For logits that are there, [N, V]; dlogits is set, may be the logits, and may be absent.
template <class T>
LossResult cross_entropy(View<const T, 2> logits, Labels labels, View<T, 2> dlogits, double scale, Context& context);

/// mean (x − target)², over all elements, and dx = scale · 2 (x − target) / size; dx is set, may be x, and may be absent.
template <class T>
double mean_squared_error(View<const T, 4> x, View<const T, 4> target, View<T, 4> dx, double scale, Context& context);

}  // namespace isomer
