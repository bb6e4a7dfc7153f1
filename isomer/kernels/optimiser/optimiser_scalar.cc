#include "isomer/simd/vec_scalar.h"
// The vectors first: optimiser_impl.h is written over them.
#include "isomer/kernels/optimiser/optimiser_impl.h"

namespace isomer {
template struct OptimiserKernels<float, Isa::scalar>;
template struct OptimiserKernels<double, Isa::scalar>;
}  // namespace isomer
