#include "isomer/simd/vec_avx512.h"
// The vectors first: unary_impl.h is written over them.
#include "isomer/kernels/elementwise/unary_impl.h"

namespace isomer {
template struct UnaryKernels<float, Isa::avx512>;
template struct UnaryKernels<double, Isa::avx512>;
}  // namespace isomer
