#include "isomer/simd/vec_scalar.h"
// The vectors first: rotary_impl.h is written over them.
#include "isomer/kernels/rotary/rotary_impl.h"

namespace isomer {
template struct RotaryKernels<float, Isa::scalar>;
template struct RotaryKernels<double, Isa::scalar>;
}  // namespace isomer
