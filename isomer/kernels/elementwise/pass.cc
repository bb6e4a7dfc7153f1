#include "isomer/kernels/elementwise/pass.h"

#include <algorithm>

#include "isomer/base/error.h"

namespace isomer {

namespace {

// Cells of a patch: with five operands in scratch still within L2.
constexpr Index kPatch = 4096;
// Cells of a task: some microseconds of work, far more than it costs to hand out.
constexpr Index kTask = 16384;

}  // namespace

Pass::Pass(const std::array<Index, 4>& shape, std::span<const Strides> given) : operands_(given.size()) {
  ISOMER_ASSERT(given.size() <= kOperands, "a pass has an array of operands");
  // From the fastest axis outwards: an axis is coalesced with the last one found if every operand goes on evenly.
  int axis = 4;
  for (int next = 3; next >= 0; --next) {
    if (shape[std::size_t(next)] == 1) continue;
    const auto joins = [&](std::size_t n) {
      return given[n][std::size_t(next)] == stride_[n][std::size_t(axis)] * shape_[std::size_t(axis)];
    };
    bool join = axis < 4;
    for (std::size_t n = 0; join && n < operands_; ++n) join = joins(n);
    if (!join) {
      --axis;
      for (std::size_t n = 0; n < operands_; ++n) stride_[n][std::size_t(axis)] = given[n][std::size_t(next)];
    }
    shape_[std::size_t(axis)] *= shape[std::size_t(next)];
  }
  if (empty()) return;
  size_.columns = std::min(shape_[3], kPatch);
  size_.rows = std::min(shape_[2], std::max<Index>(1, kPatch / size_.columns));
  per_task_ = std::max<Index>(1, kTask / (size_.rows * size_.columns));
  count();
}

void Pass::cut(int row_axis, Extent size) {
  std::swap(shape_[2], shape_[std::size_t(row_axis)]);
  for (std::size_t n = 0; n < operands_; ++n) std::swap(stride_[n][2], stride_[n][std::size_t(row_axis)]);
  size_ = size;
  per_task_ = 1;
  count();
}

void Pass::enlarge() {
  const Index rows = std::min(shape_[1], std::max<Index>(1, kPatch / size_.columns));
  if (rows > size_.rows) cut(1, {rows, size_.columns});
}

void Pass::count() {
  cuts_ = {ceil_div(shape_[2], size_.rows), ceil_div(shape_[3], size_.columns)};
  patches_ = shape_[0] * shape_[1] * cuts_[0] * cuts_[1];
}

Patch Pass::patch(Index i) const {
  const Index column = i % cuts_[1] * size_.columns, above = i / cuts_[1];
  const Index row = above % cuts_[0] * size_.rows, outer = above / cuts_[0];
  const Extent extent{std::min(size_.rows, shape_[2] - row), std::min(size_.columns, shape_[3] - column)};
  Patch patch{i, extent, outer, row, column, {}};
  for (std::size_t n = 0; n < operands_; ++n) {
    const Strides& s = stride_[n];
    patch.offset[n] = outer / shape_[1] * s[0] + outer % shape_[1] * s[1] + row * s[2] + column * s[3];
  }
  return patch;
}

}  // namespace isomer
