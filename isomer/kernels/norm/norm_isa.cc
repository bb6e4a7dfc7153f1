#include "isomer/simd/target.h"
// The vectors first: norm_impl.h is written over them.
#include "isomer/kernels/norm/norm_impl.h"

namespace isomer {
template struct NormKernels<float, kTarget>;
template struct NormKernels<double, kTarget>;
}  // namespace isomer
