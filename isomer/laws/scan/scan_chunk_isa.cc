#include "isomer/simd/target.h"
// The vector type comes first: the kernels are templates over it.
#include "isomer/laws/chunk_rows_impl.h"
#include "isomer/laws/scan/scan_chunk_impl.h"
#include "isomer/laws/scan/scan_s6_backward_impl.h"
#include "isomer/laws/scan/scan_s6_impl.h"

namespace isomer::scan_detail {
template struct Kernels<float, kTarget>;
template struct Kernels<double, kTarget>;
}  // namespace isomer::scan_detail
