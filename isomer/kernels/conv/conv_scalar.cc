#include "isomer/simd/vec_scalar.h"
// The vectors first: conv_impl.h is written over them.
#include "isomer/kernels/conv/conv_impl.h"

namespace isomer {
template struct ConvKernels<float, Isa::scalar>;
template struct ConvKernels<double, Isa::scalar>;
}  // namespace isomer
