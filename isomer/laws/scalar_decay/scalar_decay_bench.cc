// What `isomer bench` times of scalar_decay.
#include <array>
#include <cmath>
#include <memory>

#include "isomer/base/error.h"
#include "isomer/base/rng.h"
#include "isomer/laws/scalar_decay/scalar_decay.h"
#include "isomer/laws/scalar_decay/scalar_decay_law.h"
#include "isomer/laws/scalar_decay/scalar_decay_plan.h"

namespace isomer::scalar_decay_detail {

namespace {

using Normaliser = ScalarDecayOptions::Normaliser;

struct Variant {
  std::string_view name;
  Normaliser normaliser = Normaliser::none;
  bool decay = false, input = false, global = false;
};
constexpr std::array<Variant, 7> kVariants{{{"linear"},
                                            {"fixed", Normaliser::none, true},
                                            {"gated", Normaliser::none, true},
                                            {"mlstm", Normaliser::max, true, true},
                                            {"sum", Normaliser::sum},
                                            {"subtract", Normaliser::subtract},
                                            {"global", Normaliser::none, false, false, true}}};

const Variant& variant_named(const std::string& name) {
  for (const Variant& v : kVariants)
    if (v.name == name) return v;
  fail("scalar_decay", "expected the variant linear, fixed, gated, mlstm, sum, subtract or global, got ", name);
}

/// Everything a timed call needs, kept between calls.
struct Work {
  const Variant& variant;
  ScalarDecayOptions options;
  Form form;
  Buffer<float> memory;
  ScalarDecayInputs<float> in;
  ScalarDecayOutputs<float> out;
  View<const float, 4> grad_o;
  ScalarDecayGradients<float> grad;
  ScalarDecayTape<float> tape;

  explicit Work(const BenchCase& c)
      : variant(variant_named(c.variant)),
        form(c.form),
        memory(c.B * c.T * c.H * (4 * c.K + 4 * c.V + 4) + c.B * c.H * (c.K * c.V + c.K + c.V + 1) + c.B) {
    options.normaliser = variant.normaliser;
    options.chunk = c.chunk;
    if (variant.global) options.direction = ScalarDecayOptions::Direction::global;
    Rng rng(1);
    // Positive, so that the divisor of `sum` stays away from zero.
    for (float& x : memory) x = float(0.1 + rng.uniform());
    const auto tokens = [&](Index width) { return take<4>({c.B, c.T, c.H, width}); };
    in = {.q = tokens(c.K), .k = tokens(c.K), .v = tokens(c.V)};
    if (variant.decay) in.log_decay = gate(c, -0.1f);
    if (variant.input) in.log_input = gate(c, 1.0f);
    out.o = tokens(c.V);
    grad_o = tokens(c.V);
    grad = {.q = tokens(c.K), .k = tokens(c.K), .v = tokens(c.V)};
    if (variant.decay) grad.log_decay = take<3>({c.B, c.T, c.H});
    if (variant.input) grad.log_input = take<3>({c.B, c.T, c.H});
    if (variant.name == "fixed") in.log_decay.stride[0] = in.log_decay.stride[1] = 0;
    if (c.direction == "step") carry(c);
  }

 private:
  template <int R>
  View<float, R> take(const Index (&shape)[R]) {
    const auto view = contiguous(next_, shape);
    next_ += view.size();
    return view;
  }
  View<float, 3> gate(const BenchCase& c, float factor) {
    const View<float, 3> view = take<3>({c.B, c.T, c.H});
    for (Index i = 0; i < view.size(); ++i) view.data[i] *= factor;
    return view;
  }
  /// A stream: the state is moved on in place.
  void carry(const BenchCase& c) {
    ScalarDecayStates<float>& s = out.final_states;
    s.state = take<4>({c.B, c.H, c.K, c.V});
    if (variant.normaliser != Normaliser::none) s.norm = take<3>({c.B, c.H, c.K});
    if (variant.normaliser == Normaliser::max) s.max = take<2>({c.B, c.H});
    if (variant.normaliser == Normaliser::subtract) s.value_sum = take<3>({c.B, c.H, c.V});
    if (variant.normaliser == Normaliser::subtract) s.count = take<1>({c.B});
    in.initial = {s.state, s.norm, s.max, s.value_sum, s.count};
  }

  float* next_ = memory.data();
};

/// Flops of a token of one head, from the cost model in scalar_decay.h. Chunks are counted at 64 whatever is used.
double flops(const BenchCase& c, double pair_factor, double state_factor) {
  const double pairs = c.variant == "global" ? 0 : 64.0 * double(c.K + c.V);
  return double(c.B * c.T * c.H) * (pair_factor * pairs + state_factor * double(c.K * c.V));
}

}  // namespace

std::vector<BenchCase> bench_cases(bool quick) {
  std::vector<BenchCase> all;
  const auto add = [&](const char* variant, const char* direction, Index T, Index H, Index D) {
    const bool step = std::string_view(direction) == "step";
    all.push_back({.subject = "scalar_decay",
                   .variant = variant,
                   .form = step ? Form::step : Form::chunk,
                   .direction = direction,
                   .T = T,
                   .H = H,
                   .K = D,
                   .V = D});
  };
  for (const char* variant : {"linear", "fixed", "gated", "mlstm"}) {
    for (Index D : quick ? std::vector<Index>{64} : std::vector<Index>{64, 128})
      for (Index T : quick ? std::vector<Index>{2048} : std::vector<Index>{512, 2048, 8192})
        for (const char* direction : {"forward", "backward"}) add(variant, direction, T, 512 / D, D);
    add(variant, "step", 1, 8, 64);
  }
  for (const char* variant : {"sum", "subtract", "global"})
    for (const char* direction : {"forward", "backward"}) add(variant, direction, 2048, 8, 64);
  if (!quick)
    for (const char* direction : {"forward", "backward"}) add("gated", direction, 16384, 1, 64);
  return all;
}

Choice choose_bench(const BenchCase& c) {
  const bool taped = c.direction == "backward" || c.direction == "forward+backward";
  return choose(!variant_named(c.variant).global, taped, c.B * c.H, c.T, c.K, c.V);
}

BenchWork prepare_bench(const BenchCase& c) {
  auto work = std::make_shared<Work>(c);
  BenchWork bench;
  const Normaliser n = work->variant.normaliser;
  bench.state_bytes =
      double(sizeof(float)) * double(c.H * (c.K * c.V + (n == Normaliser::none ? 0 : c.K) + (n == Normaliser::max ? 1 : 0) +
                                            (n == Normaliser::subtract ? c.V : 0)));
  const auto forward = [work](Context& context) { scalar_decay(work->in, work->options, work->form, work->out, context); };
  const auto backward = [work](Context& context) {
    scalar_decay_vjp(work->in, work->options, work->form, {.o = work->grad_o, .tape = &work->tape}, work->grad, context);
  };
  if (c.direction == "step" || c.direction == "forward") {
    bench.run = forward;
    bench.flops = c.direction == "step" ? flops(c, 0, 5) : flops(c, 1, 4);
    return bench;
  }
  work->out.tape = &work->tape;
  if (c.direction == "backward") {
    auto ready = std::make_shared<bool>(false);
    bench.run = [=](Context& context) {
      if (!*ready) forward(context);
      *ready = true;
      backward(context);
    };
    bench.flops = flops(c, 2.5, 8);
    return bench;
  }
  bench.run = [=](Context& context) {
    forward(context);
    backward(context);
  };
  bench.flops = flops(c, 3.5, 12);
  return bench;
}

}  // namespace isomer::scalar_decay_detail
