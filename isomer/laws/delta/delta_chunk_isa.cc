#include "isomer/simd/target.h"
// The vector type comes first: the kernels are templates over it.
#include "isomer/laws/delta/delta_backward_impl.h"
#include "isomer/laws/delta/delta_step_impl.h"
#include "isomer/laws/delta/delta_walk_impl.h"

namespace isomer::delta_detail {
template struct Kernels<float, kTarget>;
#if ISOMER_TARGET_ISA < 2  // with_law_isa.h
template struct Kernels<double, kTarget>;
#endif
}  // namespace isomer::delta_detail
