#include "isomer/simd/vec_avx512.h"
// The vectors first: probe_impl.h is written over them.
#include "isomer/simd/probe_impl.h"

namespace isomer::simd {
template struct Probe<float, Isa::avx512>;
template struct Probe<double, Isa::avx512>;
}  // namespace isomer::simd
