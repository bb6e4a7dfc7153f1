#include "isomer/simd/vec_avx2.h"
// The vectors first: gemm_impl.h is written over them.
#include "isomer/kernels/gemm/gemm_impl.h"

namespace isomer::gemm {

template void pack_rows<float, Isa::avx2>(Index, Index, Matrix<float>, float, float*, Index) noexcept;
template void pack_columns<float, Isa::avx2>(Index, Index, Matrix<float>, float*) noexcept;
template void multiply_packed<float, Isa::avx2>(Index, Index, Index, Matrix<float>, const float*, Block<float>) noexcept;
template void multiply_direct<float, Isa::avx2>(Index, Index, Index, Matrix<float>, Matrix<float>, Block<float>) noexcept;
template void multiply_few<float, float, Isa::avx2>(Index, Index, Index, Matrix<float>, Matrix<float>, float,
                                                    Block<float>) noexcept;
template void multiply_few<float, Bf16, Isa::avx2>(Index, Index, Index, Matrix<float>, Matrix<Bf16>, float,
                                                   Block<float>) noexcept;
template void pack_rows<double, Isa::avx2>(Index, Index, Matrix<double>, double, double*, Index) noexcept;
template void pack_columns<double, Isa::avx2>(Index, Index, Matrix<double>, double*) noexcept;
template void multiply_packed<double, Isa::avx2>(Index, Index, Index, Matrix<double>, const double*, Block<double>) noexcept;
template void multiply_direct<double, Isa::avx2>(Index, Index, Index, Matrix<double>, Matrix<double>, Block<double>) noexcept;
template void multiply_few<double, double, Isa::avx2>(Index, Index, Index, Matrix<double>, Matrix<double>, double,
                                                      Block<double>) noexcept;

}  // namespace isomer::gemm
