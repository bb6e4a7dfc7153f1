#include "isomer/simd/vec_avx2.h"
// The vectors first: probe_impl.h is written over them.
#include "isomer/simd/probe_impl.h"

namespace isomer::simd {
template struct Probe<float, Isa::avx2>;
template struct Probe<double, Isa::avx2>;
}  // namespace isomer::simd
