#include "isomer/simd/target.h"
// The vectors first: map_impl.h is written over them.
#include "isomer/simd/map_impl.h"

namespace isomer::simd {
template void map<float, kTarget>(Function, const float*, float*, Index) noexcept;
template void map<double, kTarget>(Function, const double*, double*, Index) noexcept;
}  // namespace isomer::simd
