#include "isomer/simd/target.h"
// The vectors first: row_impl.h is written over them.
#include "isomer/kernels/elementwise/row_impl.h"

namespace isomer {
template struct RowKernels<float, kTarget>;
template struct RowKernels<double, kTarget>;
}  // namespace isomer
