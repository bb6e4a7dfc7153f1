#include "isomer/kernels/dropout/dropout_vectors_impl.h"

namespace isomer {
template struct PhiloxKernels<Isa::avx512>;
template struct DropoutKernels<float, Isa::avx512>;
template struct DropoutKernels<double, Isa::avx512>;
}  // namespace isomer
