#include "isomer/simd/vec_scalar.h"
// The vectors first: unary_impl.h is written over them.
#include "isomer/kernels/elementwise/unary_impl.h"

namespace isomer {
template struct UnaryKernels<float, Isa::scalar>;
template struct UnaryKernels<double, Isa::scalar>;
}  // namespace isomer
