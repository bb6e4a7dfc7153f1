#include "isomer/simd/vec_avx512.h"
// The vectors first: gated_impl.h is written over them.
#include "isomer/kernels/elementwise/gated_impl.h"

namespace isomer {
template struct GatedKernels<float, Isa::avx512>;
template struct GatedKernels<double, Isa::avx512>;
}  // namespace isomer
