#include "isomer/simd/vec_scalar.h"
// The vectors first: local_impl.h is written over them.
#include "isomer/kernels/local/local_impl.h"

namespace isomer {
template struct LocalKernels<float, Isa::scalar>;
template struct LocalKernels<double, Isa::scalar>;
}  // namespace isomer
