#include "isomer/simd/target.h"
// The vector type comes first: the kernels are templates over it.
#include "isomer/laws/attention/attention_backward_impl.h"
#include "isomer/laws/attention/attention_forward_impl.h"

namespace isomer::attention_detail {
template struct Kernels<float, kTarget>;
template struct Kernels<double, kTarget>;
}  // namespace isomer::attention_detail
