#pragma once
// gated.h over Vec; include vec_<isa>.h first.
#include "isomer/kernels/elementwise/functions_impl.h"
#include "isomer/kernels/elementwise/gated_kernels.h"
#include "isomer/kernels/elementwise/lane_impl.h"

namespace isomer {

namespace internal {

/// g(the function of that name); G is a lambda of the kernels of one instruction set.
template <class G>
ISOMER_INLINE void with_gate(Unary f, G g) {
  switch (f) {
    case Unary::sigmoid: return g(Sigmoid());
    case Unary::silu: return g(Silu());
    case Unary::gelu: return g(Gelu());
    default: return;  // gated.cc lets nothing else through
  }
}

}  // namespace internal

template <class T, Isa I>
void GatedKernels<T, I>::forward(Unary f, Extent extent, Cells<const T> g, Cells<const T> x, Cells<T> y) noexcept {
  using V = simd::Vec<T, I>;
  const internal::Parameters<V> none{V::zero(), V::zero()};
  internal::with_gate(f, [&](auto function) {
    for (Index r = 0; r < extent.rows; ++r) {
      const internal::Lane<T, I> gate(g, r), in(x, r);
      for (Index c = 0; c < extent.columns; c += V::lanes) {
        const Index left = extent.columns - c;
        (function.at(gate.load(c, left), none).value * in.load(c, left)).store(y.data + r * y.row + c, left);
      }
    }
  });
}

template <class T, Isa I>
void GatedKernels<T, I>::backward(Unary f, Extent extent, const GatedCells<T>& in, const GatedOutputs<T>& out) noexcept {
  using V = simd::Vec<T, I>;
  const internal::Parameters<V> none{V::zero(), V::zero()};
  internal::with_gate(f, [&](auto function) {
    for (Index r = 0; r < extent.rows; ++r) {
      const internal::Lane<T, I> g(in.g, r), x(in.x, r), dy(in.dy, r);
      for (Index c = 0; c < extent.columns; c += V::lanes) {
        const Index left = extent.columns - c;
        const auto at = function.at(g.load(c, left), none);
        const V up = dy.load(c, left), to_gate = at.slope * x.load(c, left) * up;
        if (out.dg.data != nullptr) internal::put(to_gate, out.accumulate_g, out.dg.data + r * out.dg.row + c, left);
        if (out.dx.data != nullptr) internal::put(at.value * up, out.accumulate_x, out.dx.data + r * out.dx.row + c, left);
      }
    }
  });
}

}  // namespace isomer
