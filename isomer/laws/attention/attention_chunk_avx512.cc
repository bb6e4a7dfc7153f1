#include "isomer/simd/vec_avx512.h"
// The vector type comes first: the kernels are templates over it.
#include "isomer/laws/attention/attention_backward_impl.h"
#include "isomer/laws/attention/attention_forward_impl.h"

namespace isomer::attention_detail {
template struct Kernels<float, Isa::avx512>;
template struct Kernels<double, Isa::avx512>;
}  // namespace isomer::attention_detail
