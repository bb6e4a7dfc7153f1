#include "isomer/kernels/elementwise/unary.h"

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/elementwise/pass.h"
#include "isomer/kernels/elementwise/unary_kernels.h"

namespace isomer {

namespace {

void check_options(const char* op, Unary f, UnaryOptions options) {
  if (f == Unary::softcap) require(options.a > 0, op, "expected a cap a > 0, got ", options.a);
}

}  // namespace

template <class T>
void unary(Unary f, UnaryOptions options, View<const T, 4> x, View<T, 4> y, Context& context) {
  check_options("unary", f, options);
  check_shape("unary", "y of the shape of x,", y.shape, x.shape);
  const UnaryJob job{f, options, Accumulate::set};
  const Pass pass(x.shape, {x.stride, y.stride});
  for_patches(pass, context, [&](const Patch& patch, Workspace& scratch) {
    const Cells<const T> in = read_cells(pass, patch, 0, x.data, scratch);
    const Cells<T> out = write_cells(pass, patch, 1, y.data, Accumulate::set, scratch);
    with_isa(context.isa(), [&]<Isa I>() { UnaryKernels<T, I>::forward(job, patch.extent, in, out); });
    store_cells(pass, patch, 1, out, y.data);
  });
}

template <class T>
void unary_vjp(Unary f, UnaryOptions options, View<const T, 4> x, View<const T, 4> dy, View<T, 4> dx, Accumulate accumulate,
               Context& context) {
  check_options("unary_vjp", f, options);
  check_shape("unary_vjp", "dy of the shape of x,", dy.shape, x.shape);
  check_shape("unary_vjp", "dx of the shape of x,", dx.shape, x.shape);
  const UnaryJob job{f, options, accumulate};
  const Pass pass(x.shape, {x.stride, dy.stride, dx.stride});
  for_patches(pass, context, [&](const Patch& patch, Workspace& scratch) {
    const Cells<const T> in = read_cells(pass, patch, 0, x.data, scratch), up = read_cells(pass, patch, 1, dy.data, scratch);
    const Cells<T> out = write_cells(pass, patch, 2, dx.data, accumulate, scratch);
    with_isa(context.isa(), [&]<Isa I>() { UnaryKernels<T, I>::backward(job, patch.extent, in, up, out); });
    store_cells(pass, patch, 2, out, dx.data);
  });
}

template void unary(Unary, UnaryOptions, View<const float, 4>, View<float, 4>, Context&);
template void unary(Unary, UnaryOptions, View<const double, 4>, View<double, 4>, Context&);
template void unary_vjp(Unary, UnaryOptions, View<const float, 4>, View<const float, 4>, View<float, 4>, Accumulate, Context&);
template void unary_vjp(Unary, UnaryOptions, View<const double, 4>, View<const double, 4>, View<double, 4>, Accumulate, Context&);

}  // namespace isomer
