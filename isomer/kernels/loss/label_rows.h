#pragma once
// What the cross-entropies share: rows of logits with a label.
#include <algorithm>
#include <cmath>

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/loss/loss.h"
#include "isomer/kernels/loss/loss_kernels.h"

namespace isomer {

/// Logits [first, first + count) of a row.
struct LogitRange {
  Index first, count;
  [[nodiscard]] bool has(Index v) const { return v >= first && v < first + count; }
};

inline void check_labels(const char* op, Labels labels, Index N, Index V) {
  check_shape(op, "labels", labels.shape, {N});
  for (Index n = 0; n < N; ++n) require(labels(n) < V, op, "expected labels below ", V, ", got ", labels(n), " at [", n, "]");
}

[[nodiscard]] inline Index count_labels(Labels labels) {
  Index count = 0;
  for (Index n = 0; n < labels.shape[0]; ++n) count += labels(n) >= 0 ? 1 : 0;
  return count;
}

/// Rows that make some microseconds of work.
[[nodiscard]] inline Index rows_of_task(Index columns) { return std::max<Index>(1, 16384 / std::max<Index>(1, columns)); }

template <class T>
void read_row(Isa isa, const T* z, LogitRange range, Index label, LogitRow<T>& row) {
  with_isa(isa, [&]<Isa I>() { LossKernels<T, I>::read_logits(range.count, z, range.first, row); });
  if (range.has(label)) row.label = z[label - range.first];
}

template <class T>
struct GradientScale {
  T factor, cap;
};

/// The gradient in place of the logits: factor · (e^(z − log Σ) − [z is the label's]), times the slope of the cap.
template <class T>
void gradient_row(Isa isa, T* z, LogitRange range, Index label, const LogitRow<T>& row, GradientScale<T> scale) {
  const T log_sum = T(double(row.most) + std::log(row.sum));
  with_isa(isa, [&]<Isa I>() { LossKernels<T, I>::gradient(range.count, z, log_sum, scale.factor, scale.cap); });
  if (!range.has(label)) return;
  // By itself, because e^(z − log Σ) − 1 cancels where the model is right.
  const T share = scale.cap == T(0) ? T(0) : row.label / scale.cap;
  z[label - range.first] = scale.factor * std::expm1(row.label - log_sum) * (T(1) - share * share);
}

class LossSum {
 public:
  template <class T>
  void add(const LogitRow<T>& row, Index label) {
    sum_ += double(row.most) - double(row.label) + std::log(row.sum);
    ++count_;
    correct_ += row.best == label ? 1 : 0;
  }
  [[nodiscard]] LossResult result() const { return {count_ == 0 ? 0 : sum_ / double(count_), count_, correct_}; }

 private:
  double sum_ = 0;
  Index count_ = 0, correct_ = 0;
};

}  // namespace isomer
