#pragma once
// What the kernels that work row by row share: the rows of a view [.., .., .., D] as plain data, dense whatever the strides,
// cut into blocks by shape alone.
//
//   each_row_block<T>({x}, {y}, context, [&]<Isa I>(auto in, Rows<T> out, RowRange range, Workspace&) {
//     for (Index r = range.begin; r < range.end; ++r) kernel<T, I>(in[0].row(r), out.row(r), D);  // dense
//   });
#include <array>
#include <cstddef>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"

namespace isomer {

/// Row r of a view, counted in order over its three leading axes. `data` is null for an absent view.
template <class T>
struct Rows {
  T* data = nullptr;
  Index first = 0;               // the row at `data`
  std::array<Index, 2> inner{};  // rows along the second and third axis; 0: `stride[0]` alone is enough
  std::array<Index, 3> stride{};

  [[nodiscard]] ISOMER_INLINE T* row(Index r) const {
    const Index n = r - first;
    if (inner[0] == 0) return data + n * stride[0];
    const Index outer = n / inner[1];
    return data + outer / inner[0] * stride[0] + outer % inner[0] * stride[1] + n % inner[1] * stride[2];
  }
};

struct RowRange {
  Index begin, end;
};

/// Rows of a block: enough work for a task, few enough for many tasks.
inline constexpr Index kRowBlock = 64;
[[nodiscard]] constexpr Index row_blocks(Index rows) { return ceil_div(rows, kRowBlock); }
[[nodiscard]] constexpr RowRange row_block(Index block, Index rows) {
  const Index begin = block * kRowBlock;
  return {begin, begin + kRowBlock < rows ? begin + kRowBlock : rows};
}

template <class T>
[[nodiscard]] Index row_count(View<T, 4> x) {
  return x.shape[0] * x.shape[1] * x.shape[2];
}

/// A view of fewer axes as [1, .., D].
template <class T, int R>
[[nodiscard]] View<T, 4> with_leading_axes(View<T, R> x) {
  static_assert(R >= 1 && R <= 4);
  View<T, 4> y{x.data, {1, 1, 1, 1}, {0, 0, 0, 0}};
  for (int axis = 0; axis < R; ++axis) {
    y.shape[4 - R + axis] = x.shape[axis];
    y.stride[4 - R + axis] = x.stride[axis];
  }
  return y;
}

template <class T>
[[nodiscard]] bool dense_rows(View<T, 4> x) {
  return x.shape[3] <= 1 || x.stride[3] == 1;
}

/// The rows where they are; the last axis must be dense.
template <class T>
[[nodiscard]] Rows<T> rows_of(View<T, 4> x) {
  Rows<T> rows{.data = x.data, .first = 0, .inner = {x.shape[1], x.shape[2]}, .stride = {x.stride[0], x.stride[1], x.stride[2]}};
  const bool even = (x.shape[2] == 1 || x.stride[1] == x.shape[2] * x.stride[2] || x.shape[1] == 1) &&
                    (x.shape[0] == 1 || x.stride[0] == x.shape[1] * x.shape[2] * x.stride[2]);
  if (x.shape[2] > 1 && even) return {.data = x.data, .first = 0, .inner = {}, .stride = {x.stride[2], 0, 0}};
  if (x.shape[2] == 1 && (x.shape[0] == 1 || x.stride[0] == x.shape[1] * x.stride[1]))
    return {.data = x.data, .first = 0, .inner = {}, .stride = {x.stride[1], 0, 0}};
  return rows;
}

/// Rows of the range in scratch, uninitialised, D apart.
template <class T>
[[nodiscard]] Rows<T> scratch_rows(Index D, RowRange range, Workspace& scratch) {
  return {.data = scratch.take<T>((range.end - range.begin) * D), .first = range.begin, .inner = {}, .stride = {D, 0, 0}};
}

/// The rows of the range in scratch.
template <class T>
[[nodiscard]] Rows<T> copy_rows(View<const T, 4> x, RowRange range, Workspace& scratch) {
  const Rows<T> copy = scratch_rows<T>(x.shape[3], range, scratch);
  const Rows<const T> source = rows_of(x);
  for (Index r = range.begin; r < range.end; ++r)
    for (Index d = 0; d < x.shape[3]; ++d) copy.row(r)[d] = source.row(r)[d * x.stride[3]];
  return copy;
}

template <class T>
[[nodiscard]] Rows<const T> read_rows(View<const T, 4> x, RowRange range, Workspace& scratch) {
  if (!x.present() || dense_rows(x)) return rows_of(x);
  const Rows<T> copy = copy_rows(x, range, scratch);
  return {.data = copy.data, .first = copy.first, .inner = copy.inner, .stride = copy.stride};
}

/// Rows to write; those that are added to hold what was there.
template <class T>
[[nodiscard]] Rows<T> write_rows(View<T, 4> x, RowRange range, Workspace& scratch, Accumulate accumulate = Accumulate::set) {
  if (!x.present() || dense_rows(x)) return rows_of(x);
  return accumulate == Accumulate::add ? copy_rows<T>(x, range, scratch) : scratch_rows<T>(x.shape[3], range, scratch);
}

/// Copies rows made by write_rows back when they are not in place.
template <class T>
void store_rows(Rows<T> from, View<T, 4> x, RowRange range) {
  if (!x.present() || dense_rows(x)) return;
  const Rows<T> target = rows_of(x);
  for (Index r = range.begin; r < range.end; ++r)
    for (Index d = 0; d < x.shape[3]; ++d) target.row(r)[d * x.stride[3]] = from.row(r)[d];
}

/// Where rows of results go, and whether they are added to what is there.
template <class T>
struct RowTarget {
  View<T, 4> view;
  Accumulate accumulate = Accumulate::set;
};

/// A pass over the rows of views that have equally many, in parallel: run<I>(in, out, range, scratch) for every block, with the
/// rows of each of `from` and of `to`. A run takes them by value: kernels that are called row by row would else have them read
/// from memory again for each.
template <class T, std::size_t N, class F>
void each_row_block(const View<const T, 4> (&from)[N], RowTarget<T> to, Context& context, const F& run) {
  const Index R = row_count(from[0]);
  context.parallel(row_blocks(R), [&](Index block, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const RowRange range = row_block(block, R);
    std::array<Rows<const T>, N> in;
    for (std::size_t n = 0; n < N; ++n) in[n] = read_rows(from[n], range, scratch);
    const Rows<T> out = write_rows(to.view, range, scratch, to.accumulate);
    with_isa(context.isa(), [&]<Isa I>() { run.template operator()<I>(in, out, range, scratch); });
    store_rows(out, to.view, range);
  });
}

/// A small matrix, dense: the view's own memory or a copy; null for an absent view.
template <class T>
[[nodiscard]] const T* dense_matrix(View<const T, 2> x, Workspace& scratch) {
  if (!x.present() || x.contiguous()) return x.data;
  T* copy = scratch.take<T>(x.size());
  for (Index i = 0; i < x.shape[0]; ++i)
    for (Index j = 0; j < x.shape[1]; ++j) copy[i * x.shape[1] + j] = x(i, j);
  return copy;
}

/// target(i, j) = the sum of `count` partial matrices that follow each other, in order and in double.
template <class T>
void sum_partials(const T* partials, Index count, Index stride, View<T, 2> target) {
  if (!target.present()) return;
  for (Index i = 0; i < target.shape[0]; ++i)
    for (Index j = 0; j < target.shape[1]; ++j) {
      double sum = 0;
      for (Index n = 0; n < count; ++n) sum += double(partials[n * stride + i * target.shape[1] + j]);
      target(i, j) = T(sum);
    }
}

}  // namespace isomer
