#include "isomer/simd/vec_avx2.h"
// The vector type comes first: the kernels are templates over it.
#include "isomer/laws/scalar_decay/scalar_decay_backward_impl.h"
#include "isomer/laws/scalar_decay/scalar_decay_step_impl.h"
#include "isomer/laws/scalar_decay/scalar_decay_walk_impl.h"

namespace isomer::scalar_decay_detail {
template struct Kernels<float, Isa::avx2>;
template struct Kernels<double, Isa::avx2>;
}  // namespace isomer::scalar_decay_detail
