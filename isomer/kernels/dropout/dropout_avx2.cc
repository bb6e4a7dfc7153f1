#include "isomer/kernels/dropout/dropout_vectors_impl.h"

namespace isomer {
template struct PhiloxKernels<Isa::avx2>;
template struct DropoutKernels<float, Isa::avx2>;
template struct DropoutKernels<double, Isa::avx2>;
}  // namespace isomer
