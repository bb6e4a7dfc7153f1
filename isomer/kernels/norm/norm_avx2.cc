#include "isomer/simd/vec_avx2.h"
// The vectors first: norm_impl.h is written over them.
#include "isomer/kernels/norm/norm_impl.h"

namespace isomer {
template struct NormKernels<float, Isa::avx2>;
template struct NormKernels<double, Isa::avx2>;
}  // namespace isomer
