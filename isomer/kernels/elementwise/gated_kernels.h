#pragma once
// Gates for one instruction set, as gated.cc sees them.
#include "isomer/base/cpu.h"
#include "isomer/kernels/elementwise/cells.h"
#include "isomer/kernels/elementwise/gated.h"

namespace isomer {

template <class T>
struct GatedCells {
  Cells<const T> g, x, dy;
};
/// Each may be absent.
template <class T>
struct GatedOutputs {
  Cells<T> dg, dx;
  Accumulate accumulate_g, accumulate_x;
};

template <class T, Isa I>
struct GatedKernels {
  static void forward(Unary f, Extent extent, Cells<const T> g, Cells<const T> x, Cells<T> y) noexcept;
  static void backward(Unary f, Extent extent, const GatedCells<T>& in, const GatedOutputs<T>& out) noexcept;
};

}  // namespace isomer
