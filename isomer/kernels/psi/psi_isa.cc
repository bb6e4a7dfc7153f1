#include "isomer/simd/target.h"
// The vectors first: psi_impl.h is written over them.
#include "isomer/kernels/psi/psi_impl.h"

namespace isomer {
template struct PsiKernels<float, kTarget>;
template struct PsiKernels<double, kTarget>;
}  // namespace isomer
