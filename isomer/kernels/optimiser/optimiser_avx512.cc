#include "isomer/simd/vec_avx512.h"
// The vectors first: optimiser_impl.h is written over them.
#include "isomer/kernels/optimiser/optimiser_impl.h"

namespace isomer {
template struct OptimiserKernels<float, Isa::avx512>;
template struct OptimiserKernels<double, Isa::avx512>;
}  // namespace isomer
