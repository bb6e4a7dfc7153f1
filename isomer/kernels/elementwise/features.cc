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
  each_row_block<T>({x}, {y}, context, [&]<Isa I>(auto in, Rows<T> out, RowRange range, Workspace&) {
    const Index D = x.shape[3];
    for (Index r = range.begin; r < range.end; ++r) RowKernels<T, I>::softmax(D, in[0].row(r), out.row(r));
  });
}

template <class T>
void softmax_vjp(View<const T, 4> y, View<const T, 4> dy, View<T, 4> dx, Accumulate accumulate, Context& context) {
  check_shape("softmax_vjp", "dy of the shape of y,", dy.shape, y.shape);
  check_shape("softmax_vjp", "dx of the shape of y,", dx.shape, y.shape);
  if (y.size() == 0) return;
  const auto run = [&]<Isa I>(auto in, Rows<T> out, RowRange range, Workspace&) {
    const Index D = y.shape[3];
    const Accumulate mode = accumulate;
    for (Index r = range.begin; r < range.end; ++r)
      RowKernels<T, I>::softmax_vjp(D, in[0].row(r), in[1].row(r), out.row(r), mode);
  };
  each_row_block<T>({y, dy}, {dx, accumulate}, context, run);
}

template <class T>
void taylor_features(View<const T, 4> x, View<T, 4> y, Context& context) {
  check_shape("taylor_features", "y", y.shape, taylor_shape(x.shape));
  const TaylorScales<T> scales = scales_of<T>(x.shape[3]);
  each_row_block<T>({x}, {y}, context, [&]<Isa I>(auto in, Rows<T> out, RowRange range, Workspace&) {
    for (Index r = range.begin; r < range.end; ++r) RowKernels<T, I>::taylor(scales, in[0].row(r), out.row(r));
  });
}

template <class T>
void taylor_features_vjp(View<const T, 4> x, View<const T, 4> dy, View<T, 4> dx, Accumulate accumulate, Context& context) {
  check_shape("taylor_features_vjp", "dy", dy.shape, taylor_shape(x.shape));
  check_shape("taylor_features_vjp", "dx of the shape of x,", dx.shape, x.shape);
  const TaylorScales<T> scales = scales_of<T>(x.shape[3]);
  const auto run = [&]<Isa I>(auto in, Rows<T> out, RowRange range, Workspace& scratch) {
    T* sums = scratch.take<T>(scales.d);
    for (Index r = range.begin; r < range.end; ++r)
      RowKernels<T, I>::taylor_vjp(scales, in[0].row(r), in[1].row(r), sums, out.row(r), accumulate);
  };
  each_row_block<T>({x, dy}, {dx, accumulate}, context, run);
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
