#include "isomer/simd/vec_scalar.h"
// The vector type comes first: the kernels are templates over it.
#include "isomer/laws/attention/attention_backward_impl.h"
#include "isomer/laws/attention/attention_forward_impl.h"

namespace isomer::attention_detail {
template struct Kernels<float, Isa::scalar>;
template struct Kernels<double, Isa::scalar>;
}  // namespace isomer::attention_detail
