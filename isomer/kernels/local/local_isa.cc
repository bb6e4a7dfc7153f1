#include "isomer/simd/target.h"
// The vectors first: local_impl.h is written over them.
#include "isomer/kernels/local/local_impl.h"

namespace isomer {
template struct LocalKernels<float, kTarget>;
template struct LocalKernels<double, kTarget>;
}  // namespace isomer
