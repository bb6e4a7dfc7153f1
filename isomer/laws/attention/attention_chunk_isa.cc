#include "isomer/simd/target.h"
// The vector type comes first: the kernels are templates over it.
#include "isomer/laws/attention/attention_backward_impl.h"
#include "isomer/laws/attention/attention_forward_impl.h"
#include "isomer/laws/attention/attention_step_impl.h"

namespace isomer::attention_detail {
template struct Kernels<float, kTarget>;
#if ISOMER_TARGET_ISA < 2  // with_law_isa.h
template struct Kernels<double, kTarget>;
#endif
}  // namespace isomer::attention_detail
