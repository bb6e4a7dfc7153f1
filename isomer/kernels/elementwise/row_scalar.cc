#include "isomer/simd/vec_scalar.h"
// The vectors first: row_impl.h is written over them.
#include "isomer/kernels/elementwise/row_impl.h"

namespace isomer {
template struct RowKernels<float, Isa::scalar>;
template struct RowKernels<double, Isa::scalar>;
}  // namespace isomer
