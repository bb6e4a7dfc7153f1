#include "isomer/simd/vec_scalar.h"
// The vectors first: norm_impl.h is written over them.
#include "isomer/kernels/norm/norm_impl.h"

namespace isomer {
template struct NormKernels<float, Isa::scalar>;
template struct NormKernels<double, Isa::scalar>;
}  // namespace isomer
