#include "isomer/simd/vec_scalar.h"
// The vectors first: psi_impl.h is written over them.
#include "isomer/kernels/psi/psi_impl.h"

namespace isomer {
template struct PsiKernels<float, Isa::scalar>;
template struct PsiKernels<double, Isa::scalar>;
}  // namespace isomer
