#include "isomer/simd/vec_scalar.h"
// The vectors first: arithmetic_impl.h is written over them.
#include "isomer/kernels/elementwise/arithmetic_impl.h"

namespace isomer {
template struct ArithmeticKernels<float, Isa::scalar>;
template struct ArithmeticKernels<double, Isa::scalar>;
}  // namespace isomer
