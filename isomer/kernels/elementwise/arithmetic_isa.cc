#include "isomer/simd/target.h"
// The vectors first: arithmetic_impl.h is written over them.
#include "isomer/kernels/elementwise/arithmetic_impl.h"

namespace isomer {
template struct ArithmeticKernels<float, kTarget>;
template struct ArithmeticKernels<double, kTarget>;
}  // namespace isomer
