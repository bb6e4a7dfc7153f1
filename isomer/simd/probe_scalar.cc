#include "isomer/simd/vec_scalar.h"
// The vectors first: probe_impl.h is written over them.
#include "isomer/simd/probe_impl.h"

namespace isomer::simd {
template struct Probe<float, Isa::scalar>;
template struct Probe<double, Isa::scalar>;
}  // namespace isomer::simd
