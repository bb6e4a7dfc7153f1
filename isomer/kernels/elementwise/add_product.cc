#include "isomer/kernels/elementwise/add_product.h"

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/elementwise/arithmetic_kernels.h"
#include "isomer/kernels/elementwise/pass.h"

namespace isomer {

template <class T>
void add_product(View<const T, 4> x, View<const T, 4> a, View<const T, 4> b, View<T, 4> y, Context& context) {
  for (std::size_t axis = 0; axis < 4; ++axis)
    for (const View<const T, 4>& in : {x, a, b})
      require(in.shape[axis] == y.shape[axis] || in.shape[axis] == 1, "add_product", "expected axes of size 1 or as in y, ",
              shape_text(y.shape), ", got ", shape_text(in.shape));
  const Pass pass(y.shape, {strides_in(x, y.shape), strides_in(a, y.shape), strides_in(b, y.shape), y.stride});
  for_patches(pass, context, [&](const Patch& patch, Workspace& scratch) {
    const Cells<const T> base = read_cells(pass, patch, 0, x.data, scratch);
    const Cells<const T> first = read_cells(pass, patch, 1, a.data, scratch);
    const Cells<const T> second = read_cells(pass, patch, 2, b.data, scratch);
    const Cells<T> out = write_cells(pass, patch, 3, y.data, Accumulate::set, scratch);
    with_isa(context.isa(), [&]<Isa I>() { ArithmeticKernels<T, I>::add_product(patch.extent, base, first, second, out); });
    store_cells(pass, patch, 3, out, y.data);
  });
}

template void add_product(View<const float, 4>, View<const float, 4>, View<const float, 4>, View<float, 4>, Context&);
template void add_product(View<const double, 4>, View<const double, 4>, View<const double, 4>, View<double, 4>, Context&);

}  // namespace isomer
