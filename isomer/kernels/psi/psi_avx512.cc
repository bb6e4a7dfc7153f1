#include "isomer/simd/vec_avx512.h"
// The vectors first: psi_impl.h is written over them.
#include "isomer/kernels/psi/psi_impl.h"

namespace isomer {
template struct PsiKernels<float, Isa::avx512>;
template struct PsiKernels<double, Isa::avx512>;
}  // namespace isomer
