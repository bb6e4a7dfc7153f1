#include "isomer/simd/vec_avx2.h"
// The vectors first: gemm_impl.h is written over them.
#include "isomer/kernels/gemm/gemm_impl.h"

namespace isomer::gemm {
template struct Kernels<float, Isa::avx2>;
template struct Kernels<double, Isa::avx2>;
template struct Reading<float, float, Isa::avx2>;
template struct Reading<float, Bf16, Isa::avx2>;
template struct Reading<float, F16, Isa::avx2>;
template struct Reading<double, double, Isa::avx2>;
}  // namespace isomer::gemm
