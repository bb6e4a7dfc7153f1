#pragma once
// What the laws share about the layout [B, T, H, D]: packed sequences, grouped heads, and views with a dense last axis.
#include <cstdint>
#include <span>

#include "isomer/base/context.h"
#include "isomer/base/pool.h"
#include "isomer/base/view.h"

namespace isomer {

/// One sequence: tokens first … first + length − 1 of row `batch`.
struct Sequence {
  Index batch, first, length;
};

/// The rows of a batch, or the sequences that `offsets` packs into the only row. Throws Error when offsets are not 0 ≤ … ≤ T.
[[nodiscard]] PoolVector<Sequence> sequences(const char* op, Index B, Index T, std::span<const std::int64_t> offsets);

/// H = the largest of the head counts; throws Error unless the others divide it.
[[nodiscard]] Index common_heads(const char* op, Index Gq, Index Gk, Index Gv);

/// The head of a tensor with G heads that head h of H reads.
[[nodiscard]] constexpr Index group_of(Index h, Index H, Index G) { return h / (H / G); }

/// The row-major view of memory.
template <class T, std::size_t R>
[[nodiscard]] View<T, int(R)> row_major(T* data, const std::array<Index, R>& shape) {
  View<T, int(R)> view{data, shape, {}};
  Index stride = 1;
  for (std::size_t axis = R; axis-- > 0; stride *= shape[axis]) view.stride[axis] = stride;
  return view;
}

/// f(i) for the position i of every element, the last axis fastest.
template <std::size_t R, class F>
void each_element(const std::array<Index, R>& shape, F f) {
  Index size = 1;
  for (Index s : shape) size *= s;
  std::array<Index, R> i{};
  for (Index n = 0; n < size; ++n) {
    f(i);
    for (std::size_t axis = R; axis-- > 0 && ++i[axis] == shape[axis];) i[axis] = 0;
  }
}
template <class T, int R>
[[nodiscard]] T* element(const View<T, R>& x, const std::array<Index, std::size_t(R)>& i) {
  T* p = x.data;
  for (int axis = 0; axis < R; ++axis) p += i[axis] * x.stride[axis];
  return p;
}

/// to = from, of the same shape, row by row.
template <class T, int R>
void copy_rows(View<const T, R> from, View<T, R> to) {
  std::array<Index, R> rows = from.shape;
  if (rows[R - 1] > 1) rows[R - 1] = 1;
  each_element(rows, [&](const std::array<Index, R>& i) {
    const T* x = element(from, i);
    T* y = element(to, i);
    for (Index j = 0; j < from.shape[R - 1]; ++j) y[j * to.stride[R - 1]] = x[j * from.stride[R - 1]];
  });
}

/// A dense copy in the scratch; an absent view stays absent.
template <class T, int R>
[[nodiscard]] View<const T, R> copy_of(View<const T, R> x, Workspace& scratch) {
  if (!x.present()) return x;
  const View<T, R> copy = row_major(scratch.take<T>(x.size()), x.shape);
  copy_rows<T, R>(x, copy);
  return copy;
}

/// The view itself if its last axis is dense, else a copy that is: of rows that are repeated, one.
template <class T, int R>
[[nodiscard]] View<const T, R> dense_rows(View<const T, R> x, Workspace& scratch) {
  if (!x.present() || x.shape[R - 1] <= 1 || x.stride[R - 1] == 1) return x;
  View<const T, R> once = x;
  for (int axis = 0; axis + 1 < R; ++axis)
    if (x.stride[axis] == 0 && x.shape[axis] > 1) once.shape[axis] = 1;
  View<const T, R> copy = copy_of(once, scratch);
  for (int axis = 0; axis + 1 < R; ++axis)
    if (once.shape[axis] != x.shape[axis]) copy.stride[axis] = 0;
  copy.shape = x.shape;
  return copy;
}

/// Can rows of the state be read and written where they are?
template <class T>
[[nodiscard]] bool in_place(const View<T, 4>& state) {
  return state.present() && (state.shape[3] == 1 || state.stride[3] == 1);
}

/// The view itself if its last axis is dense, else a dense stand-in for what is to be written: copy_back() moves it.
template <class T, int R>
[[nodiscard]] View<T, R> dense_output(const View<T, R>& x, Workspace& scratch) {
  if (!x.present() || x.shape[R - 1] <= 1 || x.stride[R - 1] == 1) return x;
  return row_major(scratch.take<T>(x.size()), x.shape);
}
template <class T, int R>
void copy_back(const View<T, R>& from, const View<T, R>& to) {
  if (from.data != to.data) copy_rows<T, R>(from, to);
}

/// The view itself if it has dense rows for each of H heads, else a stand-in that has: put_heads() moves or sums it.
template <class T>
[[nodiscard]] View<T, 4> head_output(const View<T, 4>& x, Index H, Workspace& scratch) {
  if (!x.present() || x.shape[2] == H) return dense_output(x, scratch);
  return contiguous(scratch.take<T>(x.size() / x.shape[2] * H), {x.shape[0], x.shape[1], H, x.shape[3]});
}

/// Sums gradients of H heads, [B, T, H, D], into those of a tensor with G heads, [B, T, G, D].
template <class T>
void sum_groups(View<const T, 4> heads, View<T, 4> groups, Context& context);

extern template void sum_groups(View<const float, 4>, View<float, 4>, Context&);
extern template void sum_groups(View<const double, 4>, View<double, 4>, Context&);

/// What head_output() stood in for gets its gradient.
template <class T>
void put_heads(const View<T, 4>& heads, const View<T, 4>& to, Context& context) {
  if (!to.present()) return;
  if (to.shape[2] < heads.shape[2])
    sum_groups<T>(heads, to, context);
  else
    copy_back(heads, to);
}

}  // namespace isomer
