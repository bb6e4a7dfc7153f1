#include "isomer/simd/vec_avx512.h"
// The vectors first: row_impl.h is written over them.
#include "isomer/kernels/elementwise/row_impl.h"

namespace isomer {
template struct RowKernels<float, Isa::avx512>;
template struct RowKernels<double, Isa::avx512>;
}  // namespace isomer
