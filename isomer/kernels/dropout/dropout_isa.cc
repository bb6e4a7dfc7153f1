#include "isomer/kernels/dropout/dropout_impl.h"
#include "isomer/simd/target.h"
#if ISOMER_TARGET_ISA > 0
#include "isomer/kernels/dropout/dropout_vectors_impl.h"
#else
#include "isomer/kernels/dropout/dropout_words_impl.h"
#endif

namespace isomer {
template struct PhiloxKernels<kTarget>;
template struct DropoutKernels<float, kTarget>;
template struct DropoutKernels<double, kTarget>;
}  // namespace isomer
