#include "isomer/simd/vec_avx2.h"
// The vectors first: loss_impl.h is written over them.
#include "isomer/kernels/loss/loss_impl.h"

namespace isomer {
template struct LossKernels<float, Isa::avx2>;
template struct LossKernels<double, Isa::avx2>;
}  // namespace isomer
