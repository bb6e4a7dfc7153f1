#include "isomer/simd/target.h"
// The vectors first: rotary_impl.h is written over them.
#include "isomer/kernels/rotary/rotary_impl.h"

namespace isomer {
template struct RotaryKernels<float, kTarget>;
template struct RotaryKernels<double, kTarget>;
}  // namespace isomer
