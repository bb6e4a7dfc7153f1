#include "isomer/nn/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"

namespace isomer {

namespace {
// In the order of Schedule::Kind.
constexpr std::array<std::string_view, 4> kScheduleNames{"constant", "cosine", "linear", "warmup-stable-decay"};

/// How far `step` is on the way from `begin` to `end`, in [0, 1].
double progress(Index step, double begin, double end) {
  if (double(step) >= end) return 1;
  return std::max(0.0, (double(step) - begin) / (end - begin));
}
}  // namespace

std::string_view name_of(Schedule::Kind kind) { return kScheduleNames[std::size_t(kind)]; }

Schedule::Kind schedule_named(std::string_view name) { return Schedule::Kind(position_of("schedule", name, kScheduleNames)); }

void check(const Schedule& schedule) {
  require(schedule.steps >= 0, "schedule", "expected steps >= 0, got ", schedule.steps);
  require(schedule.warmup >= 0 && schedule.warmup <= schedule.steps, "schedule",
          "expected warmup from 0 to steps = ", schedule.steps, ", got ", schedule.warmup);
  require(schedule.final_fraction >= 0 && schedule.final_fraction <= 1, "schedule", "expected final_fraction in [0, 1], got ",
          schedule.final_fraction);
  require(schedule.decay >= 0 && schedule.decay <= 1, "schedule", "expected decay in [0, 1], got ", schedule.decay);
}

double factor(const Schedule& schedule, Index step) {
  if (step < schedule.warmup) return double(step + 1) / double(schedule.warmup);
  const double steps = double(schedule.steps), warmup = double(schedule.warmup);
  const auto fallen = [&](double share) { return 1 - (1 - schedule.final_fraction) * share; };
  switch (schedule.kind) {
    case Schedule::Kind::constant: return 1;
    case Schedule::Kind::cosine: return fallen((1 - std::cos(std::numbers::pi * progress(step, warmup, steps))) / 2);
    case Schedule::Kind::linear: return fallen(progress(step, warmup, steps));
    case Schedule::Kind::warmup_stable_decay:
      // A decay longer than what the warm-up leaves begins behind it.
      return fallen(progress(step, std::max(warmup, steps * (1 - schedule.decay)), steps));
  }
  return 1;
}

}  // namespace isomer
