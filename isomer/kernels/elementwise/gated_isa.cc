#include "isomer/simd/target.h"
// The vectors first: gated_impl.h is written over them.
#include "isomer/kernels/elementwise/gated_impl.h"

namespace isomer {
template struct GatedKernels<float, kTarget>;
template struct GatedKernels<double, kTarget>;
}  // namespace isomer
