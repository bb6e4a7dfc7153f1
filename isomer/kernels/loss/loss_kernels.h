#pragma once
// Rows of losses for one instruction set, as loss.cc sees them.
#include <limits>

#include "isomer/base/cpu.h"
#include "isomer/kernels/elementwise/cells.h"

namespace isomer {

/// What is known of a row after some of its logits.
template <class T>
struct LogitRow {
  T most = -std::numeric_limits<T>::infinity();
  double sum = 0;  // Σ e^(z − most)
  Index best = 0;  // the first place of the largest
  T label = 0;     // the logit of the label
};

template <class T, Isa I>
struct LossKernels {
  /// z = cap(z + bias) in place; bias may be null, cap = 0 is none.
  static void finish_logits(Index n, T* z, const T* bias, T cap) noexcept;
  /// Takes in logits [first, first + n).
  static void read_logits(Index n, const T* z, Index first, LogitRow<T>& row) noexcept;
  /// z = factor · e^(z − log_sum), the gradient but for the label's own part, times the slope of the cap.
  static void gradient(Index n, T* z, T log_sum, T factor, T cap) noexcept;
  /// Σ (x − target)², and dx = factor · (x − target) if there is one.
  static double squared_error(Extent extent, Cells<const T> x, Cells<const T> target, T factor, Cells<T> dx) noexcept;
};

}  // namespace isomer
