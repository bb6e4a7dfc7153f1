#include "isomer/kernels/elementwise/binary.h"

#include <algorithm>

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/elementwise/arithmetic_kernels.h"
#include "isomer/kernels/elementwise/pass.h"
#include "isomer/kernels/elementwise/sum.h"

namespace isomer {

namespace {

using Shape = std::array<Index, 4>;

Shape common_shape(const char* op, const Shape& a, const Shape& b) {
  Shape y = a;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (a[axis] != b[axis] && a[axis] != 1 && b[axis] != 1)
      fail(op, "expected b with axes of size 1 or of the size in a, ", shape_text(a), ", got ", shape_text(b));
    if (a[axis] == 1) y[axis] = b[axis];
  }
  return y;
}

}  // namespace

template <class T>
void binary(Binary f, View<const T, 4> a, View<const T, 4> b, View<T, 4> y, Context& context) {
  check_shape("binary", "y", y.shape, common_shape("binary", a.shape, b.shape));
  const Pass pass(y.shape, {strides_in(a, y.shape), strides_in(b, y.shape), y.stride});
  for_patches(pass, context, [&](const Patch& patch, Workspace& scratch) {
    const Cells<const T> first = read_cells(pass, patch, 0, a.data, scratch);
    const Cells<const T> second = read_cells(pass, patch, 1, b.data, scratch);
    const Cells<T> out = write_cells(pass, patch, 2, y.data, Accumulate::set, scratch);
    with_isa(context.isa(), [&]<Isa I>() { ArithmeticKernels<T, I>::binary(f, patch.extent, first, second, out); });
    store_cells(pass, patch, 2, out, y.data);
  });
}

template <class T>
void binary_vjp(Binary f, View<const T, 4> a, View<const T, 4> b, View<const T, 4> dy, const BinaryGradients<T>& gradients,
                Context& context) {
  check_shape("binary_vjp", "dy", dy.shape, common_shape("binary_vjp", a.shape, b.shape));
  const bool product = f == Binary::multiply;
  if (gradients.da.present()) {
    check_shape("binary_vjp", "da", gradients.da.shape, a.shape);
    sum_to<T>({.x = dy, .weight = product ? b : View<const T, 4>{}}, gradients.da, gradients.accumulate_a, context);
  }
  if (gradients.db.present()) {
    check_shape("binary_vjp", "db", gradients.db.shape, b.shape);
    const double sign = f == Binary::subtract ? -1 : 1;
    sum_to<T>({.x = dy, .weight = product ? a : View<const T, 4>{}, .scale = sign}, gradients.db, gradients.accumulate_b,
              context);
  }
}

template void binary(Binary, View<const float, 4>, View<const float, 4>, View<float, 4>, Context&);
template void binary(Binary, View<const double, 4>, View<const double, 4>, View<double, 4>, Context&);
template void binary_vjp(Binary, View<const float, 4>, View<const float, 4>, View<const float, 4>, const BinaryGradients<float>&,
                         Context&);
template void binary_vjp(Binary, View<const double, 4>, View<const double, 4>, View<const double, 4>,
                         const BinaryGradients<double>&, Context&);

}  // namespace isomer
