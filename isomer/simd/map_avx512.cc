#include "isomer/simd/vec_avx512.h"
// The vectors first: map_impl.h is written over them.
#include "isomer/simd/map_impl.h"

namespace isomer::simd {
template void map<float, Isa::avx512>(Function, const float*, float*, Index) noexcept;
template void map<double, Isa::avx512>(Function, const double*, double*, Index) noexcept;
}  // namespace isomer::simd
