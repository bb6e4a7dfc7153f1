#include "isomer/simd/vec_avx512.h"
// The vectors first: norm_impl.h is written over them.
#include "isomer/kernels/norm/norm_impl.h"

namespace isomer {
template struct NormKernels<float, Isa::avx512>;
template struct NormKernels<double, Isa::avx512>;
}  // namespace isomer
