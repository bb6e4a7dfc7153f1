#pragma once
// What the laws' benches share: the grid of cases, and the work of a direction from its two halves.
#include <initializer_list>
#include <string_view>

#include "isomer/laws/law.h"

namespace isomer {

/// Heads of 64 and 128 in 512 channels, T = 512, 2048, 8192, forward and backward, and a step, for each variant; quick: one of
/// each.
[[nodiscard]] std::vector<BenchCase> bench_grid(const char* subject, std::initializer_list<std::string_view> variants,
                                                bool quick);
/// One head and 16384 tokens: nothing to split but the sequence.
[[nodiscard]] std::vector<BenchCase> long_sequence(const char* subject, std::string_view variant);

/// Does the direction want gradients, so that forward leaves a tape?
[[nodiscard]] bool wants_backward(const BenchCase& what);

struct BenchHalves {
  std::function<void(Context&)> forward, backward;
};
/// The halves that the direction asks for, with the flops and the state that the law counts. `backward` alone runs forward once,
/// for its tape.
[[nodiscard]] BenchWork bench_work(const Law& law, const BenchCase& what, const BenchHalves& halves);

}  // namespace isomer
