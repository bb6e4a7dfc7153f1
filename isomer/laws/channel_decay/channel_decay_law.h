#pragma once
// `channel_decay` as the tools see it; C++ programs use channel_decay.h.
#include "isomer/laws/law.h"

namespace isomer {

[[nodiscard]] const Law& channel_decay_law();

namespace channel_decay_detail {
[[nodiscard]] std::vector<BenchCase> bench_cases(bool quick);
[[nodiscard]] BenchWork prepare_bench(const BenchCase& what);
[[nodiscard]] Choice choose_bench(const BenchCase& what);
}  // namespace channel_decay_detail

}  // namespace isomer
