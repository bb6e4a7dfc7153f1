#include "isomer/simd/vec_avx2.h"
// The vectors first: rotary_impl.h is written over them.
#include "isomer/kernels/rotary/rotary_impl.h"

namespace isomer {
template struct RotaryKernels<float, Isa::avx2>;
template struct RotaryKernels<double, Isa::avx2>;
}  // namespace isomer
