#include "isomer/simd/vec_scalar.h"
// The vectors first: gated_impl.h is written over them.
#include "isomer/kernels/elementwise/gated_impl.h"

namespace isomer {
template struct GatedKernels<float, Isa::scalar>;
template struct GatedKernels<double, Isa::scalar>;
}  // namespace isomer
