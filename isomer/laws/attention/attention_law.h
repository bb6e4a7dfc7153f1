#pragma once
// `attention` as the tools see it; C++ programs use attention.h.
#include "isomer/laws/law.h"

namespace isomer {

[[nodiscard]] const Law& attention_law();

namespace attention_detail {
[[nodiscard]] std::vector<BenchCase> bench_cases(bool quick);
[[nodiscard]] BenchWork prepare_bench(const BenchCase& what);
}  // namespace attention_detail

}  // namespace isomer
