#pragma once
// How the learning rate changes over a run: a factor for each step, a pure function of the step, so that resuming needs no state.
//
//   const Schedule schedule{.kind = schedule_named("cosine"), .steps = 1000, .warmup = 100};
//   const double lr = peak * factor(schedule, step);                     // step counts from 0
//
//   warm-up              (step + 1) / warmup while step < warmup: the first step already moves, step warmup − 1 has 1
//   constant             1
//   linear               1 → final along p
//   cosine               1 → final along (1 − cos πp) / 2
//   warmup-stable-decay  1, then 1 → final linearly over the last `decay` share of all steps
// with p = (step − warmup) / (steps − warmup). From step `steps` on it is `final` (constant: 1), so a run that goes on goes on.
#include <cstdint>
#include <string_view>

#include "isomer/base/index.h"

namespace isomer {

struct Schedule {
  enum class Kind : std::uint8_t { constant, cosine, linear, warmup_stable_decay };
  Kind kind = Kind::cosine;
  Index steps = 0;
  Index warmup = 0;
  double final_fraction = 0;  // of the peak, at the end
  double decay = 0.2;         // warmup-stable-decay: share of all steps
};

[[nodiscard]] std::string_view name_of(Schedule::Kind kind);
/// Throws Error naming the nearest when there is none of that name.
[[nodiscard]] Schedule::Kind schedule_named(std::string_view name);

/// Throws Error for numbers that make no schedule: negative or too many warm-up steps, fractions outside [0, 1].
void check(const Schedule& schedule);

/// What the peak learning rate is multiplied with in `step` ≥ 0.
[[nodiscard]] double factor(const Schedule& schedule, Index step);

}  // namespace isomer
