#pragma once
// `scalar_decay` as the tools see it; C++ programs use scalar_decay.h.
#include "isomer/laws/law.h"

namespace isomer {

[[nodiscard]] const Law& scalar_decay_law();

namespace scalar_decay_detail {
[[nodiscard]] std::vector<BenchCase> bench_cases(bool quick);
[[nodiscard]] BenchWork prepare_bench(const BenchCase& what);
[[nodiscard]] Choice choose_bench(const BenchCase& what);
}  // namespace scalar_decay_detail

}  // namespace isomer
