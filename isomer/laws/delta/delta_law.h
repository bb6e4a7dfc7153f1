#pragma once
// `delta` as the tools see it; C++ programs use delta.h.
#include "isomer/laws/law.h"

namespace isomer {

[[nodiscard]] const Law& delta_law();

namespace delta_detail {
[[nodiscard]] std::vector<BenchCase> bench_cases(bool quick);
[[nodiscard]] BenchWork prepare_bench(const BenchCase& what);
[[nodiscard]] Choice choose_bench(const BenchCase& what);
}  // namespace delta_detail

}  // namespace isomer
