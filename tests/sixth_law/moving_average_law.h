#pragma once
// moving_average: an exponential moving average as a law, in one folder: what a new law has to say and nothing else.
//
//   h_t = a_t h_{t−1} + (1 − a_t) x_t,   o_t = scale · h_t
#include "isomer/laws/bench_work.h"
#include "isomer/laws/bound_law.h"
#include "isomer/laws/dsf.h"
#include "isomer/laws/layout.h"
#include "isomer/laws/option_table.h"

namespace isomer {

struct MovingAverageOptions {
  double scale = 1;
};

[[nodiscard]] const Law& moving_average_law();

namespace moving_average_detail {
// Places of the specs below.
enum In : std::size_t { x, a, initial_state };
enum Out : std::size_t { o, final_state };

inline const OptionTable<MovingAverageOptions>& options() {
  static const OptionTable<MovingAverageOptions> table({option<&MovingAverageOptions::scale>("scale", "factor of the outputs")});
  return table;
}

/// One call, in numbers R.
template <class T, class R>
struct Pass {
  const LawViews &in, &out, &grad_out, &grad_in;
  double scale;

  void forward(const Sequence& s, Index n, Index c) const {
    const View<const T, 3> values = in[x], keeps = in[a];
    const View<const T, 2> first = in[initial_state];
    const View<T, 3> to = out[o];
    const View<T, 2> last = out[final_state];
    R h = first.present() ? R(first(n, c)) : R(0);
    for (Index t = s.first; t < s.first + s.length; ++t) {
      const R keep = keeps(s.batch, t, c);
      h = keep * h + (1 - keep) * R(values(s.batch, t, c));
      to(s.batch, t, c) = T(R(scale) * h);
    }
    if (last.present()) last(n, c) = T(h);
  }
  void backward(const Sequence& s, Index n, Index c) const {
    const View<const T, 3> values = in[x], keeps = in[a], arrived = grad_out[o];
    const View<const T, 2> first = in[initial_state], last = grad_out[final_state];
    const View<T, 3> grad_x = grad_in[x], grad_a = grad_in[a];
    const View<T, 2> grad_first = grad_in[initial_state];
    std::vector<R> before;
    R h = first.present() ? R(first(n, c)) : R(0);
    for (Index t = s.first; t < s.first + s.length; ++t) {
      before.push_back(h);
      h = R(keeps(s.batch, t, c)) * h + (1 - R(keeps(s.batch, t, c))) * R(values(s.batch, t, c));
    }
    R grad = last.present() ? R(last(n, c)) : R(0);
    for (Index t = s.first + s.length; t-- > s.first;) {
      const R keep = keeps(s.batch, t, c);
      if (arrived.present()) grad += R(scale) * R(arrived(s.batch, t, c));
      if (grad_x.present()) grad_x(s.batch, t, c) = T((1 - keep) * grad);
      if (grad_a.present()) grad_a(s.batch, t, c) = T((before[std::size_t(t - s.first)] - R(values(s.batch, t, c))) * grad);
      grad *= keep;
    }
    if (grad_first.present()) grad_first(n, c) = T(grad);
  }
};
}  // namespace moving_average_detail

class BoundMovingAverage final : public BoundLaw {
 public:
  explicit BoundMovingAverage(const MovingAverageOptions& options = {}) : options_(options) {}

  [[nodiscard]] const Law& law() const override { return moving_average_law(); }
  [[nodiscard]] Settings settings() const override { return moving_average_detail::options().write(options_); }
  void forward(const LawViews& in, const LawViews& out, const LawRun& run) const override {
    each(in, out, {}, {}, run, [](const auto& pass, const Sequence& s, Index n, Index c) { pass.forward(s, n, c); });
  }
  void backward(const LawViews& in, const LawViews& out, const LawViews& grad_out, const LawViews& grad_in,
                const LawRun& run) const override {
    each(in, out, grad_out, grad_in, run, [](const auto& pass, const Sequence& s, Index n, Index c) { pass.backward(s, n, c); });
  }
  [[nodiscard]] double flops(const LawSizes& s, Given, LawPass pass, Form) const override {
    return double(s.B * s.T * s.N) * (pass == LawPass::backward ? 6 : 4);
  }
  [[nodiscard]] StateDimension state_dimension(const LawSizes& s, Given) const override { return {1, s.N}; }
  [[nodiscard]] std::vector<std::string> equations(Given) const override { return {"h = a * h + (1 - a) * in", "o = h"}; }
  [[nodiscard]] std::string_view symbol(const TensorSpec& input, Given) const override {
    return input.name == "x" ? "in" : input.name;
  }
  [[nodiscard]] Dsf system(const DsfSource& from) const override {
    const Index N = from.size("N");
    Dsf system = from.blank(from.sequence.length, N, 1, N);
    const auto start = from.state("initial_state", N, DsfSource::Heads::none);
    for (Index i = 0; i < N; ++i) system.initial[std::size_t(i)] = start[std::size_t(i)];
    for (Index t = 0; t < system.T; ++t) {
      const auto keep = from.plain_row("a", t);
      for (Index i = 0; i < N; ++i) {
        DsfToken& token = system.token(t, i);
        token.decay[0] = keep[std::size_t(i)];
        token.B[0] = 1 - keep[std::size_t(i)];
        token.C[0] = options_.scale;
      }
    }
    return system;
  }
  [[nodiscard]] std::vector<std::string_view> written() const override { return {"x"}; }

 private:
  template <class F>
  void each(const LawViews& in, const LawViews& out, const LawViews& grad_out, const LawViews& grad_in, const LawRun& run,
            F f) const {
    with_type(in[0].type, [&]<class T>() {
      const auto all = sequences("moving_average", in[0].shape[0], in[0].shape[1], run.offsets);
      for (Index n = 0; n < Index(all.size()); ++n)
        for (Index c = 0; c < in[0].shape[2]; ++c)
          if (run.form == Form::reference)
            f(moving_average_detail::Pass<T, double>{in, out, grad_out, grad_in, options_.scale}, all[std::size_t(n)], n, c);
          else
            f(moving_average_detail::Pass<T, T>{in, out, grad_out, grad_in, options_.scale}, all[std::size_t(n)], n, c);
    });
  }
  MovingAverageOptions options_;
};

class MovingAverageLaw final : public Law {
 public:
  [[nodiscard]] std::string_view name() const override { return "moving_average"; }
  [[nodiscard]] std::string_view equation() const override { return "h = a h + (1 - a) x, o = scale h"; }
  [[nodiscard]] std::span<const TensorSpec> inputs() const override {
    static constexpr std::array<TensorSpec, 4> specs{{{"x", "B T N", Domain::normal, true},
                                                      {"a", "B T N", Domain::unit, true},
                                                      {"initial_state", "n N"},
                                                      {"offsets", "n+1", Domain::offsets}}};
    return specs;
  }
  [[nodiscard]] std::span<const TensorSpec> outputs() const override {
    static constexpr std::array<TensorSpec, 2> specs{{{"o", "B T N"}, {"final_state", "n N"}}};
    return specs;
  }
  [[nodiscard]] std::span<const StateSpec> states() const override {
    static constexpr std::array<StateSpec, 1> specs{
        {{"state", moving_average_detail::initial_state, moving_average_detail::final_state}}};
    return specs;
  }
  [[nodiscard]] std::span<const OptionSpec> options() const override { return moving_average_detail::options().specs(); }
  [[nodiscard]] std::span<const Form> forms() const override {
    static constexpr std::array all{Form::reference, Form::step, Form::chunk};
    return all;
  }
  [[nodiscard]] std::span<const Case> cases() const override {
    static const std::vector<Case> all{{.label = "plain"},
                                       {.label = "carried", .with = {"initial_state"}},
                                       {.label = "packed", .settings = {{"scale", "0.5"}}, .with = {"initial_state", "offsets"}}};
    return all;
  }
  [[nodiscard]] double tolerance(std::string_view) const override { return 32; }
  [[nodiscard]] std::shared_ptr<const BoundLaw> bind(const Settings& settings) const override {
    return std::make_shared<BoundMovingAverage>(moving_average_detail::options().read(settings));
  }
  [[nodiscard]] std::span<const BenchVariant> variants() const override {
    static const std::vector<BenchVariant> all{{.name = "plain"}};
    return all;
  }
  [[nodiscard]] LawSizes bench_sizes(const BenchCase& what) const override {
    return {.B = what.B, .T = what.T, .S = what.T, .N = what.H * what.K, .n = what.B};
  }
  [[nodiscard]] std::vector<BenchCase> bench_cases(bool quick) const override {
    return bench_grid("moving_average", {"plain"}, quick);
  }
  [[nodiscard]] BenchWork prepare(const BenchCase& what) const override {
    struct Work {
      explicit Work(Buffer<float> own) : memory(std::move(own)) {}
      Buffer<float> memory;
      LawViews in, out;
    };
    const LawSizes s = bench_sizes(what);
    auto work = std::make_shared<Work>(Buffer<float>(3 * s.B * s.T * s.N));
    std::fill(work->memory.begin(), work->memory.end(), 0.5f);
    const auto piece = [&](Index i) { return law_view(contiguous(work->memory.data() + i * s.B * s.T * s.N, {s.B, s.T, s.N})); };
    work->in = {piece(0), piece(1)};
    work->out = {piece(2)};
    const auto bound = bind({});
    return bench_work(
        *this, what,
        {.forward = [work, bound](Context& context) { bound->forward(work->in, work->out, {.context = context}); },
         .backward = [work, bound](
                         Context& context) { bound->backward(work->in, work->out, work->out, work->in, {.context = context}); }});
  }
};

inline const Law& moving_average_law() {
  static const MovingAverageLaw law;
  return law;
}

}  // namespace isomer
