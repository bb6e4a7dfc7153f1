#include "isomer/simd/target.h"
// The vectors first: loss_impl.h is written over them.
#include "isomer/kernels/loss/loss_impl.h"

namespace isomer {
template struct LossKernels<float, kTarget>;
template struct LossKernels<double, kTarget>;
}  // namespace isomer
