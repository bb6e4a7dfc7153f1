#include "isomer/simd/target.h"
// The vectors first: unary_impl.h is written over them.
#include "isomer/kernels/elementwise/unary_impl.h"

namespace isomer {
template struct UnaryKernels<float, kTarget>;
template struct UnaryKernels<double, kTarget>;
}  // namespace isomer
