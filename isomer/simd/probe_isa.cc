#include "isomer/simd/target.h"
// The vectors first: probe_impl.h is written over them.
#include "isomer/simd/probe_impl.h"

namespace isomer::simd {
template struct Probe<float, kTarget>;
template struct Probe<double, kTarget>;
}  // namespace isomer::simd
