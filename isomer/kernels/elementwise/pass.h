#pragma once
// What the elementwise kernels share: a pass over views of one shape, cut into patches of rows × columns. Axes that lie behind
// each other in all views are one, so that a pass over dense views has long rows whatever their shape. The cut depends on shapes
// and strides alone.
//
//   const Pass pass(y.shape, {strides_in(x, y.shape), y.stride});
//   for_patches(pass, context, [&](const Patch& patch, Workspace& scratch) {
//     const Cells<const T> in = read_cells(pass, patch, 0, x.data, scratch);
//     const Cells<T> out = write_cells(pass, patch, 1, y.data, Accumulate::set, scratch);
//     twice(patch.extent, in, out);   // rows × columns
//     store_cells(pass, patch, 1, out, y.data);
//   });
#include <array>
#include <initializer_list>
#include <span>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"
#include "isomer/kernels/elementwise/cells.h"

namespace isomer {

/// The most operands that a pass takes: gradients of fused steps have many.
inline constexpr int kOperands = 48;
using Strides = std::array<Index, 4>;

struct Patch {
  Index index;
  Extent extent;
  Index outer, row, column;             // where it begins, over the coalesced axes
  std::array<Index, kOperands> offset;  // of the first cell, in each operand
};

class Pass {
 public:
  /// One list of strides an operand; 0 where an axis is repeated.
  Pass(const std::array<Index, 4>& shape, std::span<const Strides> operands);
  Pass(const std::array<Index, 4>& shape, std::initializer_list<Strides> operands)
      : Pass(shape, std::span(operands.begin(), operands.size())) {}
  /// Takes another of the coalesced axes as rows, and patches of that size, each a task.
  void cut(int row_axis, Extent size);
  /// Takes the second axis as rows if it makes larger patches.
  void enlarge();

  [[nodiscard]] bool empty() const { return shape_[0] * shape_[1] * shape_[2] * shape_[3] == 0; }
  [[nodiscard]] Index patches() const { return patches_; }
  [[nodiscard]] Index tasks() const { return ceil_div(patches_, per_task_); }
  [[nodiscard]] Index first_patch(Index task) const { return task * per_task_; }
  [[nodiscard]] Index end_patch(Index task) const { return task + 1 < tasks() ? (task + 1) * per_task_ : patches_; }
  [[nodiscard]] Patch patch(Index i) const;

  /// The coalesced axes, the last one the fastest; unused ones have size 1 and come first.
  [[nodiscard]] const std::array<Index, 4>& shape() const { return shape_; }
  [[nodiscard]] const Strides& stride(int operand) const { return stride_[std::size_t(operand)]; }
  /// Of a patch that is not at an edge.
  [[nodiscard]] Extent size() const { return size_; }
  /// Patches along the rows and along the columns.
  [[nodiscard]] const std::array<Index, 2>& cuts() const { return cuts_; }

 private:
  std::array<Index, 4> shape_{1, 1, 1, 1};
  std::size_t operands_;
  std::array<Strides, kOperands> stride_{};
  Extent size_{};
  std::array<Index, 2> cuts_{};
  Index patches_ = 0, per_task_ = 1;

  void count();
};

/// The strides of x in a pass over `shape`: an axis of size 1 is repeated; an absent view has none.
template <class T>
[[nodiscard]] Strides strides_in(View<T, 4> x, const std::array<Index, 4>& shape) {
  for (int axis = 0; axis < 4; ++axis)
    if (x.shape[axis] != shape[axis]) x.stride[axis] = 0;
  return x.stride;
}

template <class F>
void for_patches(const Pass& pass, Context& context, F f) {
  context.parallel(pass.tasks(), [&](Index task, Workspace& scratch) {
    for (Index i = pass.first_patch(task); i < pass.end_patch(task); ++i) {
      const Workspace::Scope scope(scratch);
      f(pass.patch(i), scratch);
    }
  });
}

/// The cells as they lie in the operand's array.
template <class T>
[[nodiscard]] Cells<T> cells_of(const Pass& pass, const Patch& patch, int operand, T* data) {
  if (data == nullptr) return {};
  const Strides& stride = pass.stride(operand);
  return {data + patch.offset[std::size_t(operand)], stride[2], stride[3]};
}

template <class T, class U>
void copy_cells(Extent extent, Cells<T> from, Cells<U> to) {
  for (Index r = 0; r < extent.rows; ++r)
    for (Index c = 0; c < extent.columns; ++c) to.data[r * to.row + c * to.column] = from.data[r * from.row + c * from.column];
}

/// Cells whose columns are dense or repeated: in place or a copy.
template <class T>
[[nodiscard]] Cells<const T> read_cells(const Pass& pass, const Patch& patch, int operand, const T* data, Workspace& scratch) {
  const Cells<const T> cells = cells_of(pass, patch, operand, data);
  if (data == nullptr || cells.column == 1 || cells.column == 0) return cells;
  const Cells<T> copy{scratch.take<T>(patch.extent.rows * patch.extent.columns), patch.extent.columns, 1};
  copy_cells(patch.extent, cells, copy);
  return {copy.data, copy.row, copy.column};
}

/// Cells with dense columns to write, and to read first if they are added to.
template <class T>
[[nodiscard]] Cells<T> write_cells(const Pass& pass, const Patch& patch, int operand, T* data, Accumulate accumulate,
                                   Workspace& scratch) {
  const Cells<T> cells = cells_of(pass, patch, operand, data);
  if (data == nullptr || cells.column == 1 || patch.extent.columns == 1) return cells;
  const Cells<T> copy{scratch.take<T>(patch.extent.rows * patch.extent.columns), patch.extent.columns, 1};
  if (accumulate == Accumulate::add) copy_cells(patch.extent, cells, copy);
  return copy;
}

/// Moves cells made by write_cells, if there are any, to where they belong.
template <class T>
void store_cells(const Pass& pass, const Patch& patch, int operand, Cells<T> from, T* data) {
  const Cells<T> cells = cells_of(pass, patch, operand, data);
  if (from.data != nullptr && from.data != cells.data) copy_cells(patch.extent, from, cells);
}

}  // namespace isomer
