#include "isomer/simd/vec_avx512.h"
// The vectors first: loss_impl.h is written over them.
#include "isomer/kernels/loss/loss_impl.h"

namespace isomer {
template struct LossKernels<float, Isa::avx512>;
template struct LossKernels<double, Isa::avx512>;
}  // namespace isomer
