#pragma once
// Rows of cells over Vec; include vec_<isa>.h first.
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

}  // namespace isomer::internal
