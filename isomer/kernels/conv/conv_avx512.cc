#include "isomer/simd/vec_avx512.h"
// The vectors first: conv_impl.h is written over them.
#include "isomer/kernels/conv/conv_impl.h"

namespace isomer {
template struct ConvKernels<float, Isa::avx512>;
template struct ConvKernels<double, Isa::avx512>;
}  // namespace isomer
