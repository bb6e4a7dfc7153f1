#include "isomer/laws/bench_work.h"

#include <memory>

namespace isomer {

namespace {
BenchCase case_of(const char* subject, std::string_view variant, const char* direction, Index T, Index H, Index D) {
  const bool step = std::string_view(direction) == "step";
  return {.subject = subject,
          .variant = std::string(variant),
          .form = step ? Form::step : Form::chunk,
          .direction = direction,
          .T = T,
          .H = H,
          .K = D,
          .V = D};
}
constexpr Index kChannels = 512;
}  // namespace

std::vector<BenchCase> bench_grid(const char* subject, std::initializer_list<std::string_view> variants, bool quick) {
  std::vector<BenchCase> all;
  for (std::string_view variant : variants)
    for (Index D : quick ? std::vector<Index>{64} : std::vector<Index>{64, 128}) {
      for (Index T : quick ? std::vector<Index>{2048} : std::vector<Index>{512, 2048, 8192})
        for (const char* direction : {"forward", "backward"})
          all.push_back(case_of(subject, variant, direction, T, kChannels / D, D));
      all.push_back(case_of(subject, variant, "step", 1, kChannels / D, D));
    }
  return all;
}

std::vector<BenchCase> long_sequence(const char* subject, std::string_view variant) {
  return {case_of(subject, variant, "forward", 16384, 1, 64), case_of(subject, variant, "backward", 16384, 1, 64)};
}

bool wants_backward(const BenchCase& what) { return what.direction.ends_with("backward"); }

BenchWork bench_work(const BenchCase& what, const BenchHalves& halves, double state_bytes) {
  const auto& [forward, backward, step_flops, forward_flops, backward_flops] = halves;
  if (what.direction == "step") return {forward, step_flops, state_bytes};
  if (what.direction == "forward") return {forward, forward_flops, state_bytes};
  if (what.direction == "backward") {
    const auto run = [=, forward = forward, backward = backward, ready = std::make_shared<bool>(false)](Context& context) {
      if (!*ready) forward(context);
      *ready = true;
      backward(context);
    };
    return {run, backward_flops, state_bytes};
  }
  const auto run = [forward = forward, backward = backward](Context& context) {
    forward(context);
    backward(context);
  };
  return {run, forward_flops + backward_flops, state_bytes};
}

}  // namespace isomer
