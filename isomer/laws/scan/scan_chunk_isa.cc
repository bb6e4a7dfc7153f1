#include "isomer/simd/target.h"
// The vector type comes first: the kernels are templates over it.
#include "isomer/laws/chunk_rows_impl.h"
#include "isomer/laws/scan/scan_chunk_impl.h"
#include "isomer/laws/scan/scan_s6_backward_impl.h"
#include "isomer/laws/scan/scan_s6_impl.h"

namespace isomer::scan_detail {
template struct Kernels<float, kTarget>;
#if ISOMER_TARGET_ISA < 2  // with_law_isa.h
template struct Kernels<double, kTarget>;
#endif
}  // namespace isomer::scan_detail
