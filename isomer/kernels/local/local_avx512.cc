#include "isomer/simd/vec_avx512.h"
// The vectors first: local_impl.h is written over them.
#include "isomer/kernels/local/local_impl.h"

namespace isomer {
template struct LocalKernels<float, Isa::avx512>;
template struct LocalKernels<double, Isa::avx512>;
}  // namespace isomer
