#include "isomer/kernels/elementwise/gated.h"

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/elementwise/gated_kernels.h"
#include "isomer/kernels/elementwise/pass.h"

namespace isomer {

namespace {

void check_gate(const char* op, Unary f) { require(is_gate(f), op, "expected f = sigmoid, silu or gelu, got function ", int(f)); }

}  // namespace

template <class T>
void gated(Unary f, View<const T, 4> g, View<const T, 4> x, View<T, 4> y, Context& context) {
  check_gate("gated", f);
  check_shape("gated", "g of the shape of x,", g.shape, x.shape);
  check_shape("gated", "y of the shape of x,", y.shape, x.shape);
  const Pass pass(x.shape, {g.stride, x.stride, y.stride});
  for_patches(pass, context, [&](const Patch& patch, Workspace& scratch) {
    const Cells<const T> gate = read_cells(pass, patch, 0, g.data, scratch), in = read_cells(pass, patch, 1, x.data, scratch);
    const Cells<T> out = write_cells(pass, patch, 2, y.data, Accumulate::set, scratch);
    with_isa(context.isa(), [&]<Isa I>() { GatedKernels<T, I>::forward(f, patch.extent, gate, in, out); });
    store_cells(pass, patch, 2, out, y.data);
  });
}

template <class T>
void gated_vjp(Unary f, View<const T, 4> g, View<const T, 4> x, View<const T, 4> dy, const GatedGradients<T>& gradients,
               Context& context) {
  const View<T, 4> dg = gradients.dg, dx = gradients.dx;
  check_gate("gated_vjp", f);
  check_shape("gated_vjp", "g of the shape of x,", g.shape, x.shape);
  check_shape("gated_vjp", "dy of the shape of x,", dy.shape, x.shape);
  if (dg.present()) check_shape("gated_vjp", "dg of the shape of x,", dg.shape, x.shape);
  if (dx.present()) check_shape("gated_vjp", "dx of the shape of x,", dx.shape, x.shape);
  const Pass pass(x.shape, {g.stride, x.stride, dy.stride, dg.stride, dx.stride});
  for_patches(pass, context, [&](const Patch& patch, Workspace& scratch) {
    const GatedCells<T> in{read_cells(pass, patch, 0, g.data, scratch), read_cells(pass, patch, 1, x.data, scratch),
                           read_cells(pass, patch, 2, dy.data, scratch)};
    const GatedOutputs<T> out{write_cells(pass, patch, 3, dg.data, gradients.accumulate_g, scratch),
                              write_cells(pass, patch, 4, dx.data, gradients.accumulate_x, scratch), gradients.accumulate_g,
                              gradients.accumulate_x};
    with_isa(context.isa(), [&]<Isa I>() { GatedKernels<T, I>::backward(f, patch.extent, in, out); });
    store_cells(pass, patch, 3, out.dg, dg.data);
    store_cells(pass, patch, 4, out.dx, dx.data);
  });
}

template void gated(Unary, View<const float, 4>, View<const float, 4>, View<float, 4>, Context&);
template void gated(Unary, View<const double, 4>, View<const double, 4>, View<double, 4>, Context&);
template void gated_vjp(Unary, View<const float, 4>, View<const float, 4>, View<const float, 4>, const GatedGradients<float>&,
                        Context&);
template void gated_vjp(Unary, View<const double, 4>, View<const double, 4>, View<const double, 4>, const GatedGradients<double>&,
                        Context&);

}  // namespace isomer
