#include "isomer/laws/bench_work.h"

#include <memory>

#include "isomer/laws/bound_law.h"

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

BenchWork bench_work(const Law& law, const BenchCase& what, const BenchHalves& halves) {
  const auto& [forward, backward] = halves;
  const BoundCase call(law, what);
  const auto flops = [&](LawPass pass) { return call.bound->flops(call.sizes, call.given, pass, Form::chunk); };
  const StateSize state = call.bound->state_size(call.sizes, call.given);
  BenchWork work{.run = forward, .flops = flops(LawPass::forward)};
  work.state_bytes = double(sizeof(float)) * double(state.fixed + state.per_token * call.sizes.S);
  if (what.direction == "step") work.flops = flops(LawPass::step);
  if (!wants_backward(what)) return work;
  if (what.direction == "backward") {
    work.run = [=, forward = forward, backward = backward, ready = std::make_shared<bool>(false)](Context& context) {
      if (!*ready) forward(context);
      *ready = true;
      backward(context);
    };
    work.flops = flops(LawPass::backward);
    return work;
  }
  work.run = [forward = forward, backward = backward](Context& context) {
    forward(context);
    backward(context);
  };
  work.flops += flops(LawPass::backward);
  return work;
}

}  // namespace isomer
