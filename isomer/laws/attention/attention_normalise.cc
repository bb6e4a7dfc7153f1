// What stands between the weighted sums and the output: the denominator of softmax, or one of its substitutes.
//
// With the exp kernel x is the weighted mean and l the log of the sum of weights, so a plain sum is x·e^l and nothing overflows
// before it must. With the Taylor kernel x is the plain sum and l the sum of weights.
#include <cmath>

#include "isomer/laws/attention/attention_problem.h"

namespace isomer::attention_detail {

namespace {
using Normaliser = AttentionOptions::Normaliser;

struct Moments {
  double mean = 0, square = 0;
};
template <class T>
Moments moments(const T* x, Index n) {
  Moments m;
  for (Index j = 0; j < n; ++j) m.mean += double(x[j]), m.square += double(x[j]) * double(x[j]);
  m.mean /= double(n);
  return m;
}

/// o = (x − shift) · factor for every normaliser.
struct Affine {
  double shift = 0, factor = 1;
};
template <class T>
Affine affine(const Problem& p, const T* x, T l, double count, double gate) {
  if (count == 0) return {0, 0};  // no key was seen
  const double sum = p.taylor() ? double(l) : std::exp(double(l)), plain = p.taylor() ? 1.0 : sum;
  switch (p.options.normaliser) {
    case Normaliser::sum: return {0, p.taylor() ? 1.0 / (sum + p.eps) : (p.eps == 0 ? 1.0 : sum / (sum + p.eps))};
    case Normaliser::l2: return {0, 1.0 / std::max(std::sqrt(moments(x, p.V).square), p.eps)};
    case Normaliser::rms: return {0, 1.0 / std::sqrt(moments(x, p.V).square / double(p.V) + p.eps)};
    case Normaliser::layer: {
      const double mean = moments(x, p.V).mean;
      double variance = 0;
      for (Index j = 0; j < p.V; ++j) variance += (double(x[j]) - mean) * (double(x[j]) - mean);
      return {mean, 1.0 / std::sqrt(variance / double(p.V) + p.eps)};
    }
    case Normaliser::count: return {0, plain / count};
    case Normaliser::gate: return {0, gate * plain / count};
    case Normaliser::none: return {0, plain};
  }
  return {};
}
}  // namespace

template <class T>
void normalise(const Problem& p, const T* x, T l, double count, double gate, T* o) {
  const Affine a = affine(p, x, l, count, gate);
  for (Index j = 0; j < p.V; ++j) o[j] = T((double(x[j]) - a.shift) * a.factor);
}

template <class T>
ScalarGradients normalise_vjp(const Problem& p, const T* x, T l, double count, double gate, const T* grad_o, T* grad_x) {
  const Affine a = affine(p, x, l, count, gate);
  // With y = (x − shift)·factor: g·y, g·x and the mean of g are all that any of the gradients needs.
  double g_y = 0, g_x = 0, g_mean = 0;
  for (Index j = 0; j < p.V; ++j) {
    const double g = double(grad_o[j]);
    g_x += g * double(x[j]);
    g_y += g * (double(x[j]) - a.shift) * a.factor;
    g_mean += g / double(p.V);
  }
  const auto write = [&](double along_y, double along_1) {
    for (Index j = 0; j < p.V; ++j)
      grad_x[j] = T(a.factor * (double(grad_o[j]) - along_1 - along_y * (double(x[j]) - a.shift) * a.factor));
  };
  switch (p.options.normaliser) {
    case Normaliser::l2:
      // Below eps the norm is a constant.
      write(std::sqrt(moments(x, p.V).square) > p.eps ? g_y : 0.0, 0.0);
      return {0, 0};
    case Normaliser::rms: write(g_y / double(p.V), 0.0); return {0, 0};
    case Normaliser::layer: write(g_y / double(p.V), g_mean); return {0, 0};
    default: write(0.0, 0.0);
  }
  if (count == 0) return {0, 0};
  if (p.options.normaliser == Normaliser::sum)
    return {p.taylor() ? -a.factor * a.factor * g_x : g_x * a.factor * (1.0 - a.factor), 0};
  return {p.taylor() ? 0.0 : g_y, (p.taylor() ? 1.0 : std::exp(double(l))) / count * g_x};
}

template void normalise(const Problem&, const float*, float, double, double, float*);
template void normalise(const Problem&, const double*, double, double, double, double*);
template ScalarGradients normalise_vjp(const Problem&, const float*, float, double, double, const float*, float*);
template ScalarGradients normalise_vjp(const Problem&, const double*, double, double, double, const double*, double*);

}  // namespace isomer::attention_detail
