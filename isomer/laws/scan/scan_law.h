#pragma once
// `scan` as the tools see it; C++ programs use scan.h.
#include "isomer/laws/law.h"

namespace isomer {

[[nodiscard]] const Law& scan_law();

namespace scan_detail {
[[nodiscard]] std::vector<BenchCase> bench_cases(bool quick);
[[nodiscard]] BenchWork prepare_bench(const BenchCase& what);
[[nodiscard]] Choice choose_bench(const BenchCase& what);
}  // namespace scan_detail

}  // namespace isomer
