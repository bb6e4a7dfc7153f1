#include "isomer/kernels/elementwise/features.h"

#include <cmath>

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/elementwise/row_kernels.h"
#include "isomer/kernels/rows.h"

namespace isomer {

namespace {

template <class T>
TaylorScales<T> scales_of(Index d) {
  const double root = std::sqrt(double(d));
  return {d, T(1 / std::sqrt(root)), T(1 / (std::sqrt(2.0) * root)), T(1 / root)};
}

std::array<Index, 4> taylor_shape(std::array<Index, 4> shape) {
  shape[3] = taylor_size(shape[3]);
  return shape;
}

}  // namespace

template <class T>
void softmax(View<const T, 4> x, View<T, 4> y, Context& context) {
  check_shape("softmax", "y of the shape of x,", y.shape, x.shape);
  if (x.size() == 0) return;
  const Index R = row_count(x), D = x.shape[3];
  context.parallel(row_blocks(R), [&](Index block, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const RowRange range = row_block(block, R);
    const Rows<const T> in = read_rows(x, range, scratch);
    const Rows<T> out = write_rows(y, range, scratch);
    with_isa(context.isa(), [&]<Isa I>() {
      for (Index r = range.begin; r < range.end; ++r) RowKernels<T, I>::softmax(D, in.row(r), out.row(r));
    });
    store_rows(out, y, range);
  });
}

template <class T>
void softmax_vjp(View<const T, 4> y, View<const T, 4> dy, View<T, 4> dx, Accumulate accumulate, Context& context) {
  check_shape("softmax_vjp", "dy of the shape of y,", dy.shape, y.shape);
  check_shape("softmax_vjp", "dx of the shape of y,", dx.shape, y.shape);
  if (y.size() == 0) return;
  const Index R = row_count(y), D = y.shape[3];
  context.parallel(row_blocks(R), [&](Index block, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const RowRange range = row_block(block, R);
    const Rows<const T> weights = read_rows(y, range, scratch), up = read_rows(dy, range, scratch);
    const Rows<T> out = write_rows(dx, range, scratch, accumulate);
    with_isa(context.isa(), [&]<Isa I>() {
      for (Index r = range.begin; r < range.end; ++r)
        RowKernels<T, I>::softmax_vjp(D, weights.row(r), up.row(r), out.row(r), accumulate);
    });
    store_rows(out, dx, range);
  });
}

template <class T>
void taylor_features(View<const T, 4> x, View<T, 4> y, Context& context) {
  check_shape("taylor_features", "y", y.shape, taylor_shape(x.shape));
  const TaylorScales<T> scales = scales_of<T>(x.shape[3]);
  const Index R = row_count(x);
  context.parallel(row_blocks(R), [&](Index block, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const RowRange range = row_block(block, R);
    const Rows<const T> in = read_rows(x, range, scratch);
    const Rows<T> out = write_rows(y, range, scratch);
    with_isa(context.isa(), [&]<Isa I>() {
      for (Index r = range.begin; r < range.end; ++r) RowKernels<T, I>::taylor(scales, in.row(r), out.row(r));
    });
    store_rows(out, y, range);
  });
}

template <class T>
void taylor_features_vjp(View<const T, 4> x, View<const T, 4> dy, View<T, 4> dx, Accumulate accumulate, Context& context) {
  check_shape("taylor_features_vjp", "dy", dy.shape, taylor_shape(x.shape));
  check_shape("taylor_features_vjp", "dx of the shape of x,", dx.shape, x.shape);
  const TaylorScales<T> scales = scales_of<T>(x.shape[3]);
  const Index R = row_count(x);
  context.parallel(row_blocks(R), [&](Index block, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const RowRange range = row_block(block, R);
    const Rows<const T> in = read_rows(x, range, scratch), up = read_rows(dy, range, scratch);
    const Rows<T> out = write_rows(dx, range, scratch, accumulate);
    T* sums = scratch.take<T>(scales.d);
    with_isa(context.isa(), [&]<Isa I>() {
      for (Index r = range.begin; r < range.end; ++r)
        RowKernels<T, I>::taylor_vjp(scales, in.row(r), up.row(r), sums, out.row(r), accumulate);
    });
    store_rows(out, dx, range);
  });
}

template void softmax(View<const float, 4>, View<float, 4>, Context&);
template void softmax(View<const double, 4>, View<double, 4>, Context&);
template void softmax_vjp(View<const float, 4>, View<const float, 4>, View<float, 4>, Accumulate, Context&);
template void softmax_vjp(View<const double, 4>, View<const double, 4>, View<double, 4>, Accumulate, Context&);
template void taylor_features(View<const float, 4>, View<float, 4>, Context&);
template void taylor_features(View<const double, 4>, View<double, 4>, Context&);
template void taylor_features_vjp(View<const float, 4>, View<const float, 4>, View<float, 4>, Accumulate, Context&);
template void taylor_features_vjp(View<const double, 4>, View<const double, 4>, View<double, 4>, Accumulate, Context&);

}  // namespace isomer
