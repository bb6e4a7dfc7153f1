#include "isomer/simd/vec_scalar.h"
// The vectors first: gemm_impl.h is written over them.
#include "isomer/kernels/gemm/gemm_impl.h"

namespace isomer::gemm {
template struct Kernels<float, Isa::scalar>;
template struct Kernels<double, Isa::scalar>;
template struct Reading<float, float, Isa::scalar>;
template struct Reading<float, Bf16, Isa::scalar>;
template struct Reading<float, F16, Isa::scalar>;
template struct Reading<double, double, Isa::scalar>;
}  // namespace isomer::gemm
