#include "isomer/simd/target.h"
// The vectors first: conv_impl.h is written over them.
#include "isomer/kernels/conv/conv_impl.h"

namespace isomer {
template struct ConvKernels<float, kTarget>;
template struct ConvKernels<double, kTarget>;
}  // namespace isomer
