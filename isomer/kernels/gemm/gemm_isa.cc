#include "isomer/simd/target.h"
// The vectors first: gemm_impl.h is written over them.
#include "isomer/kernels/gemm/gemm_impl.h"

namespace isomer::gemm {
template struct Kernels<float, kTarget>;
template struct Kernels<double, kTarget>;
template struct Reading<float, float, kTarget>;
template struct Reading<float, Bf16, kTarget>;
template struct Reading<float, F16, kTarget>;
template struct Reading<double, double, kTarget>;
template struct Rounding<kTarget>;
#if ISOMER_TARGET_ISA == 2
template struct Pairs<kTarget>;
#endif
}  // namespace isomer::gemm
