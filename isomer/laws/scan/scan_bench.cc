// What `isomer bench` times of scan. Channels are H·K; of S6, V is the size N of a channel's state.
#include <memory>

#include "isomer/base/rng.h"
#include "isomer/laws/bench_work.h"
#include "isomer/laws/scan/scan.h"
#include "isomer/laws/scan/scan_law.h"

namespace isomer::scan_detail {

namespace {

/// Memory of random numbers, handed out piece by piece.
class Arrays {
 public:
  explicit Arrays(Index size) : memory_(size) {
    Rng rng(1);
    for (float& x : memory_) x = float(rng.normal());
    next_ = memory_.data();
  }
  template <int R>
  View<float, R> take(const Index (&shape)[R]) {
    const auto view = contiguous(next_, shape);
    next_ += view.size();
    return view;
  }
  /// Of size `factor` and its sign.
  template <int R>
  View<float, R> signed_as(float factor, const Index (&shape)[R]) {
    const View<float, R> view = take<R>(shape);
    for (Index i = 0; i < view.size(); ++i) view.data[i] = factor * (0.1f + (view.data[i] < 0 ? -view.data[i] : view.data[i]));
    return view;
  }

 private:
  Buffer<float> memory_;
  float* next_ = nullptr;
};

/// The plain scan, kept between calls.
struct Plain {
  Arrays arrays;
  ScanInputs<float> in;
  ScanOutputs<float> out;
  ScanCotangents<float> given;
  ScanGradients<float> grad;
  ScanTape<float> tape;
  Form form;
  ScanOptions options;

  Plain(const BenchCase& c, bool complex) : arrays(c.H * c.K * c.B * (12 * c.T + 2)), form(c.form), options{c.chunk} {
    const Index N = c.H * c.K;
    const auto tokens = [&] { return arrays.take<3>({c.B, c.T, N}); };
    in = {.log_decay = arrays.signed_as<3>(-0.1f, {c.B, c.T, N}), .x = tokens()};
    out.h = tokens();
    given = {.h = tokens(), .tape = &tape};
    grad = {.log_decay = tokens(), .x = tokens()};
    if (complex) {
      in.angle = tokens(), in.x_imag = tokens(), out.h_imag = tokens(), given.h_imag = tokens();
      grad.angle = tokens(), grad.x_imag = tokens();
    }
    if (c.direction != "step") return;
    out.final_states.state = arrays.take<2>({c.B, N});
    if (complex) out.final_states.imag = arrays.take<2>({c.B, N});
    in.initial = {out.final_states.state, out.final_states.imag};
  }
  void forward(Context& context) { scan(in, options, form, out, context); }
  void backward(Context& context) { scan_vjp(in, options, form, given, grad, context); }
};

struct S6 {
  Arrays arrays;
  ScanS6Inputs<float> in;
  ScanS6Outputs<float> out;
  ScanS6Cotangents<float> given;
  ScanS6Gradients<float> grad;
  ScanTape<float> tape;
  Form form;
  ScanOptions options;

  explicit S6(const BenchCase& c)
      : arrays(c.B * c.T * (6 * c.H * c.K + 4 * c.V) + (2 + c.B) * c.H * c.K * c.V + 2 * c.H * c.K),
        form(c.form),
        options{c.chunk} {
    const Index C = c.H * c.K, N = c.V;
    const auto channels = [&] { return arrays.take<3>({c.B, c.T, C}); };
    const auto states = [&] { return arrays.take<3>({c.B, c.T, N}); };
    in = {.x = channels(),
          .step = arrays.signed_as<3>(0.05f, {c.B, c.T, C}),
          // Not the multiples of one rate that Mamba starts from: what training makes of them.
          .a = arrays.signed_as<2>(-4.0f, {C, N}),
          .b = states(),
          .c = states(),
          .d = arrays.take<1>({C})};
    out.o = channels();
    given = {.o = channels(), .tape = &tape};
    grad = {
        .x = channels(), .step = channels(), .a = arrays.take<2>({C, N}), .b = states(), .c = states(), .d = arrays.take<1>({C})};
    if (c.direction != "step") return;
    out.final_state = arrays.take<3>({c.B, C, N});
    in.initial_state = out.final_state;
  }
  void forward(Context& context) { scan_s6(in, options, form, out, context); }
  void backward(Context& context) { scan_s6_vjp(in, options, form, given, grad, context); }
};

template <class W>
BenchWork bench_of(const std::shared_ptr<W>& work, const BenchCase& c) {
  if (wants_backward(c)) work->out.tape = &work->tape;
  return bench_work(scan_law(), c,
                    {.forward = [work](Context& context) { work->forward(context); },
                     .backward = [work](Context& context) { work->backward(context); }});
}

}  // namespace

std::vector<BenchCase> bench_cases(bool quick) {
  std::vector<BenchCase> all;
  const auto add = [&](BenchCase c) {
    c.V = c.variant == "s6" ? 16 : 1;
    // There are no heads, so channels are counted once.
    if (c.K == 64) all.push_back(c);
  };
  for (const BenchCase& c : bench_grid("scan", {"real", "complex", "s6"}, quick)) add(c);
  for (const char* variant : {"real", "complex", "s6"})
    for (const BenchCase& c : long_sequence("scan", variant))
      if (!quick) add(c);
  return all;
}

BenchWork prepare_bench(const BenchCase& c) {
  if (c.variant == "s6") return bench_of(std::make_shared<S6>(c), c);
  return bench_of(std::make_shared<Plain>(c, c.variant == "complex"), c);
}

}  // namespace isomer::scan_detail
