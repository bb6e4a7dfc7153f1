#pragma once
// What the kernels of rows share over Vec; include vec_<isa>.h first.
#include "isomer/kernels/accumulate.h"
#include "isomer/kernels/elementwise/cells.h"
#include "isomer/simd/vec.h"

namespace isomer::internal {

/// One row of an operand to read. A repeated number is kept in memory, so that a short load of it has zeros like any other.
template <class T, Isa I>
class Lane {
 public:
  using V = simd::Vec<T, I>;

  ISOMER_INLINE Lane(Cells<const T> cells, Index r) : data_(cells.data + r * cells.row), step_(cells.column) {
    if (step_ != 0) return;
    V::set(*data_).store(repeated_);
    data_ = repeated_;
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  /// Columns c, c + 1, … of which `left` exist.
  [[nodiscard]] ISOMER_INLINE V load(Index c, Index left) const { return V::load(data_ + c * step_, left); }

 private:
  const T* data_;
  Index step_;
  T repeated_[V::lanes];
};

template <class T, class V>
ISOMER_INLINE void put(V value, Accumulate accumulate, T* y, Index left) {
  if (accumulate == Accumulate::add) value = value + V::load(y, left);
  value.store(y, left);
}

/// The largest of D > 0 numbers.
template <class T, Isa I>
ISOMER_INLINE T largest_of(Index D, const T* x) {
  using V = simd::Vec<T, I>;
  if (D < V::lanes) {
    T most = x[0];
    for (Index d = 1; d < D; ++d) most = most < x[d] ? x[d] : most;
    return most;
  }
  // The last vector overlaps the one before: a short load would bring in zeros.
  V most = V::load(x + D - V::lanes);
  for (Index d = 0; d + V::lanes < D; d += V::lanes) most = max(most, V::load(x + d));
  return largest(most);
}

}  // namespace isomer::internal
