#include "isomer/simd/vec_avx2.h"
// The vectors first: arithmetic_impl.h is written over them.
#include "isomer/kernels/elementwise/arithmetic_impl.h"

namespace isomer {
template struct ArithmeticKernels<float, Isa::avx2>;
template struct ArithmeticKernels<double, Isa::avx2>;
}  // namespace isomer
