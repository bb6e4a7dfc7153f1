#include "isomer/simd/vec_scalar.h"
// The vectors first: loss_impl.h is written over them.
#include "isomer/kernels/loss/loss_impl.h"

namespace isomer {
template struct LossKernels<float, Isa::scalar>;
template struct LossKernels<double, Isa::scalar>;
}  // namespace isomer
