#include "isomer/simd/vec_avx2.h"
// The vectors first: optimiser_impl.h is written over them.
#include "isomer/kernels/optimiser/optimiser_impl.h"

namespace isomer {
template struct OptimiserKernels<float, Isa::avx2>;
template struct OptimiserKernels<double, Isa::avx2>;
}  // namespace isomer
