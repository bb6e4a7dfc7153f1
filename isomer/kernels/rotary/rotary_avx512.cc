#include "isomer/simd/vec_avx512.h"
// The vectors first: rotary_impl.h is written over them.
#include "isomer/kernels/rotary/rotary_impl.h"

namespace isomer {
template struct RotaryKernels<float, Isa::avx512>;
template struct RotaryKernels<double, Isa::avx512>;
}  // namespace isomer
