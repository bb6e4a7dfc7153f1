// What only attention has: views, streaming on a cache and on a ring, the Kronecker recurrence, error texts. That its forms
// agree, split and stay causal is proved for all laws in laws/properties_test.cc, and against goldens in tests/goldens_test.cc.
#include "isomer/laws/attention/attention.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "isomer/laws/attention/testing.h"

namespace isomer {
namespace {

using attention_testing::Data;
using attention_testing::distance;
using Options = AttentionOptions;

template <class T>
class AttentionTyped : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(AttentionTyped, Types);

TYPED_TEST(AttentionTyped, TakesAnyStrides) {
  using T = TypeParam;
  const Index B = 2, L = 70, H = 2, K = 9, V = 7;
  Data<T> q(B, L, H, K, 1), k(B, L, H, K, 2), v(B, L, H, V, 3), o(B, L, H, V, 4), g(B, L, H, V, 5);
  Data<T> dq(B, L, H, K, 6), dk(B, L, H, K, 7), dv(B, L, H, V, 8);
  // The same numbers as [B, H, D, T] in memory, misaligned by one element.
  const auto scatter = [](const Data<T>& x, std::vector<T>& memory) {
    const auto [b, l, h, d] = x.view.shape;
    memory.assign(std::size_t(b * l * h * d + 1), T(NAN));
    const View<T, 4> to{memory.data() + 1, x.view.shape, {h * d * l, 1, d * l, l}};
    for (Index i = 0; i < b; ++i)
      for (Index t = 0; t < l; ++t)
        for (Index j = 0; j < h; ++j)
          for (Index e = 0; e < d; ++e) to(i, t, j, e) = x.view(i, t, j, e);
    return to;
  };
  Context context(2);
  AttentionTape<T> tape, tape2;
  attention<T>({q.view, k.view, v.view}, {}, Form::chunk, {.o = o.view, .tape = &tape}, context);
  attention_vjp<T>({q.view, k.view, v.view}, {}, Form::chunk, {.o = o.view, .tape = &tape}, g.view, {dq.view, dk.view, dv.view},
                   context);

  std::vector<T> m[8];
  const AttentionInputs<T> in{scatter(q, m[0]), scatter(k, m[1]), scatter(v, m[2])};
  const AttentionOutputs<T> out{.o = scatter(o, m[3]), .tape = &tape2};
  for (T& x : m[3]) x = T(NAN);
  attention<T>(in, {}, Form::chunk, out, context);
  EXPECT_EQ((distance<T>(out.o, o.view)), 0.0);
  const AttentionGradients<T> grad{scatter(dq, m[4]), scatter(dk, m[5]), scatter(dv, m[6])};
  for (int i : {4, 5, 6})
    for (T& x : m[i]) x = T(NAN);
  attention_vjp<T>(in, {}, Form::chunk, out, scatter(g, m[7]), grad, context);
  EXPECT_EQ((distance<T>(grad.q, dq.view)), 0.0);
  EXPECT_EQ((distance<T>(grad.k, dk.view)), 0.0);
  EXPECT_EQ((distance<T>(grad.v, dv.view)), 0.0);
}

TYPED_TEST(AttentionTyped, VjpWithoutATapeRepeatsTheForwardPass) {
  using T = TypeParam;
  Data<T> q(1, 40, 2, 8, 1), k(1, 40, 2, 8, 2), v(1, 40, 2, 8, 3), o(1, 40, 2, 8, 4), g(1, 40, 2, 8, 5), a(1, 40, 2, 8, 6),
      b(1, 40, 2, 8, 7);
  Context context(1);
  AttentionTape<T> tape;
  Options options{.normaliser = Options::Normaliser::rms};
  attention<T>({q.view, k.view, v.view}, options, Form::chunk, {.o = o.view, .tape = &tape}, context);
  attention_vjp<T>({q.view, k.view, v.view}, options, Form::chunk, {.o = o.view, .tape = &tape}, g.view, {.q = a.view}, context);
  attention_vjp<T>({q.view, k.view, v.view}, options, Form::chunk, {.o = o.view}, g.view, {.q = b.view}, context);
  EXPECT_EQ((distance<T>(a.view, b.view)), 0.0);
}

TYPED_TEST(AttentionTyped, StreamsOnAGrowingCacheAndOnARing) {
  using T = TypeParam;
  const Index L = 150, H = 4, K = 8, V = 5;
  Data<T> q(1, L, H, K, 1), k(1, L, 2, K, 2), v(1, L, 1, V, 3), f(1, L, H, 1, 4), o(1, L, H, V, 5), s(1, L, H, V, 6);
  for (T& x : f.values) x = -std::abs(x);
  f.values[std::size_t(60 * H)] = -std::numeric_limits<T>::infinity();
  const View<const T, 3> forget{f.values.data(), {1, L, H}, {L * H, H, 1}};
  Context context(2);
  for (Index window : {0, 1, 17}) {
    for (Index sinks : {0, 3}) {
      const Options options{.window = window, .sinks = sinks};
      attention<T>({q.view, k.view, v.view, forget}, options, Form::reference, {.o = o.view}, context);
      AttentionState<T> state({1, H, 2, 1, K, V}, options);
      for (Index t = 0; t < L; ++t) {
        const auto at = [&](auto view) { return slice(view, 1, t, 1); };
        if (t == 77) {
          // A fork goes its own way and leaves the state as it was.
          AttentionState<T> fork = state;
          Data<T> other(1, 1, H, V, 9);
          attention_step<T>({at(q.view), at(k.view), at(v.view), at(forget)}, options, fork, {.o = other.view}, context);
          EXPECT_EQ(fork.length(), state.length() + 1);
        }
        attention_step<T>({at(q.view), at(k.view), at(v.view), at(forget)}, options, state, {.o = at(s.view)}, context);
      }
      EXPECT_EQ(state.length(), L);
      EXPECT_EQ(state.kept(), window > 0 ? std::min(L, sinks + window) : L);
      EXPECT_LT((distance<T>(s.view, o.view)), 40 * double(std::numeric_limits<T>::epsilon()))
          << "window " << window << " sinks " << sinks;
    }
  }
}

TYPED_TEST(AttentionTyped, StreamsSeveralTokensAtATimeAndFromAFile) {
  using T = TypeParam;
  const Index L = 150, H = 4, K = 8, V = 5;
  Data<T> q(2, L, H, K, 1), k(2, L, 2, K, 2), v(2, L, 1, V, 3), f(2, L, H, 1, 4), o(2, L, H, V, 5), s(2, L, H, V, 6);
  for (T& x : f.values) x = -std::abs(x);
  f.values[std::size_t(60 * H)] = -std::numeric_limits<T>::infinity();
  const View<const T, 3> forget{f.values.data(), {2, L, H}, {L * H, H, 1}};
  Context context(2);
  for (const bool forgets : {false, true})
    for (Index window : {0, 1, 17}) {
      for (Index sinks : {0, 3}) {
        const Options options{.window = window, .sinks = sinks};
        const View<const T, 3> f_all = forgets ? forget : View<const T, 3>();
        attention<T>({q.view, k.view, v.view, f_all}, options, Form::reference, {.o = o.view}, context);
        AttentionState<T> state({2, H, 2, 1, K, V}, options);
        Index begin = 0;
        for (Index tokens : {2, 0, 1, 60, 5, 1, 20, 61}) {
          const auto at = [&](auto view) { return view.present() ? slice(view, 1, begin, tokens) : view; };
          attention_stream<T>({at(q.view), at(k.view), at(v.view), at(f_all)}, options, state, {.o = at(s.view)}, context);
          begin += tokens;
          Tensors file;
          state.add_to(file, "a.");
          state = AttentionState<T>({2, H, 2, 1, K, V}, options);
          state.assign(file, "a.");
        }
        EXPECT_EQ(state.length(), L);
        EXPECT_LT((distance<T>(s.view, o.view)), 40 * double(std::numeric_limits<T>::epsilon()))
            << "window " << window << " sinks " << sinks << " forgets " << forgets;
      }
    }
}

TEST(Attention, StateOfAnotherShapeIsRefused) {
  Tensors file;
  AttentionState<float>({1, 2, 2, 2, 4, 4}, {}).add_to(file, "");
  AttentionState<float> other({1, 2, 2, 2, 8, 4}, {});
  EXPECT_THROW(other.assign(file, ""), Error);
  AttentionState<double> wide({1, 2, 2, 2, 4, 4}, {});
  EXPECT_THROW(wide.assign(file, ""), Error);
  file.at("length").data<std::int64_t>()[0] = -1;
  AttentionState<float> same({1, 2, 2, 2, 4, 4}, {});
  EXPECT_THROW(same.assign(file, ""), Error);
}

TYPED_TEST(AttentionTyped, AnotherTilingAgrees) {
  using T = TypeParam;
  Data<T> q(1, 200, 1, 33, 1), k(1, 200, 1, 33, 2), v(1, 200, 1, 17, 3), a(1, 200, 1, 17, 4), b(1, 200, 1, 17, 5);
  Context context(1);
  attention<T>({q.view, k.view, v.view}, {}, Form::chunk, {.o = a.view}, context);
  attention<T>({q.view, k.view, v.view}, {}, Form::parallel, {.o = b.view}, context);
  EXPECT_LT((distance<T>(a.view, b.view)), 20 * double(std::numeric_limits<T>::epsilon()));
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Outputs and gradients of a call on random numbers, queries times `size`, with forget gates and without.
template <class T>
struct Clamped {
  static constexpr Index L = 110, H = 2, K = 9, V = 7;
  Data<T> q{1, L, H, K, 1}, k{1, L, H, K, 2}, v{1, L, H, V, 3}, f{1, L, H, 1, 4}, g{1, L, H, V, 5};
  Data<T> o{1, L, H, V, 6}, dq{1, L, H, K, 7}, dk{1, L, H, K, 8}, dv{1, L, H, V, 9}, df{1, L, H, 1, 10}, sums{1, L, H, 1, 11};

  explicit Clamped(double size = 1) {
    for (T& x : q.values) x *= T(size);
    for (T& x : f.values) x = -std::abs(x);
  }
  static View<T, 3> flat(Data<T>& x) { return {x.values.data(), {1, L, H}, {L * H, H, 1}}; }
  void run(const Options& options, Form form, bool forgets) {
    Context context(1);
    const AttentionInputs<T> in{.q = q.view, .k = k.view, .v = v.view, .log_forget = forgets ? flat(f) : View<T, 3>()};
    const bool sum = options.kernel == Options::Kernel::exp && options.normaliser == Options::Normaliser::sum;
    AttentionTape<T> tape;
    const AttentionOutputs<T> out{.o = o.view, .log_sum = sum ? flat(sums) : View<T, 3>(), .tape = &tape};
    attention<T>(in, options, form, out, context);
    attention_vjp<T>(in, options, form, out, g.view,
                     {.q = dq.view, .k = dk.view, .v = dv.view, .log_forget = forgets ? flat(df) : View<T, 3>()}, context);
  }
  [[nodiscard]] std::vector<std::vector<T>> results() const {
    return {o.values, sums.values, dq.values, dk.values, dv.values, df.values};
  }
};

constexpr std::array kForms{Form::reference, Form::step, Form::chunk, Form::parallel};

TYPED_TEST(AttentionTyped, AClampAboveAllLogitsIsNone) {
  using T = TypeParam;
  for (const auto kernel : {Options::Kernel::exp, Options::Kernel::taylor})
    for (const bool forgets : {false, true})
      for (const Form form : kForms) {
        Clamped<T> plain, open, high;
        plain.run({.kernel = kernel}, form, forgets);
        open.run({.clamp = kInfinity, .kernel = kernel}, form, forgets);
        high.run({.clamp = 1000, .kernel = kernel}, form, forgets);
        EXPECT_EQ(open.results(), plain.results()) << name_of(form);
        EXPECT_EQ(high.results(), plain.results()) << name_of(form);
      }
}

TYPED_TEST(AttentionTyped, AClampBelowAllLogitsIsTheMeanOfValues) {
  using T = TypeParam;
  for (const Form form : kForms) {
    Clamped<T> all;
    all.run({.clamp = -40}, form, false);
    std::array<double, Clamped<T>::V> mean{};
    for (Index t = 0; t < Clamped<T>::L; ++t) {
      for (Index d = 0; d < Clamped<T>::V; ++d) {
        mean[std::size_t(d)] += (double(all.v.view(0, t, 1, d)) - mean[std::size_t(d)]) / double(t + 1);
        EXPECT_NEAR(double(all.o.view(0, t, 1, d)), mean[std::size_t(d)], 20 * double(std::numeric_limits<T>::epsilon()));
      }
      EXPECT_NEAR(double(all.sums.view(0, t, 1, 0)), -40 + std::log(double(t + 1)),
                  200 * double(std::numeric_limits<T>::epsilon()));
    }
    EXPECT_EQ(all.dq.values, std::vector<T>(all.dq.values.size(), T(0))) << name_of(form);
    EXPECT_EQ(all.dk.values, std::vector<T>(all.dk.values.size(), T(0))) << name_of(form);
  }
}

TYPED_TEST(AttentionTyped, AClampBoundsLargeLogits) {
  using T = TypeParam;
  // Logits reach ±100 and more: weights are at most e^5, and no sum overflows.
  for (const auto normaliser : {Options::Normaliser::sum, Options::Normaliser::none, Options::Normaliser::count})
    for (const bool forgets : {false, true}) {
      const Options options{.clamp = 5, .normaliser = normaliser};
      Clamped<T> want(60);
      want.run(options, Form::reference, forgets);
      for (const Form form : {Form::step, Form::chunk, Form::parallel}) {
        Clamped<T> got(60);
        got.run(options, form, forgets);
        const std::vector<std::vector<T>> a = got.results(), b = want.results();
        for (std::size_t i = 0; i < a.size(); ++i) {
          double worst = 0, largest = 1;
          for (std::size_t j = 0; j < a[i].size(); ++j) {
            const double e = std::abs(double(a[i][j]) - double(b[i][j]));
            worst = e <= worst ? worst : e;
            largest = std::max(largest, std::abs(double(b[i][j])));
          }
          EXPECT_LE(worst, 256 * double(std::numeric_limits<T>::epsilon()) * largest) << name_of(form) << ", result " << i;
        }
      }
    }
}

TEST(Attention, AQueryThatSeesNoKeyGivesNothing) {
  using N = Options::Normaliser;
  Data<float> q(1, 5, 1, 3, 1), k(1, 2, 1, 3, 2), v(1, 2, 1, 4, 3), o(1, 5, 1, 4, 4), dq(1, 5, 1, 3, 6), ones(1, 5, 1, 4, 5);
  Data<float> gate(1, 5, 1, 1, 7);
  Context context(1);
  for (const auto kernel : {Options::Kernel::exp, Options::Kernel::taylor})
    for (const N normaliser : {N::sum, N::l2, N::rms, N::layer, N::count, N::gate, N::none})
      for (const Form form : {Form::reference, Form::chunk, Form::parallel}) {
        const Options options{
            .direction = Options::Direction::bidirectional, .window = 1, .kernel = kernel, .normaliser = normaliser};
        AttentionInputs<float> in{q.view, k.view, v.view};
        if (normaliser == N::gate) in.gate = contiguous<const float>(gate.values.data(), {1, 5, 1});
        attention<float>(in, options, form, {.o = o.view}, context);
        attention_vjp<float>(in, options, form, {.o = o.view}, ones.view, {.q = dq.view}, context);
        for (Index t = 2; t < 5; ++t) {
          for (Index c = 0; c < 4; ++c) EXPECT_EQ(o.view(0, t, 0, c), 0.0f) << name_of(form) << " normaliser " << int(normaliser);
          for (Index c = 0; c < 3; ++c)
            EXPECT_EQ(dq.view(0, t, 0, c), 0.0f) << name_of(form) << " normaliser " << int(normaliser);
        }
        EXPECT_TRUE(std::isfinite(o.view(0, 0, 0, 0)));
      }
}

TEST(Attention, KroneckerRecurrenceEqualsThePolynomialKernel) {
  Data<double> q(2, 9, 2, 3, 1), k(2, 9, 1, 3, 2), v(2, 9, 2, 4, 3), o(2, 9, 2, 4, 4), r(2, 9, 2, 4, 5);
  Context context(1);
  for (int order : {0, 1, 2, 4, 6})
    for (auto normaliser : {Options::Normaliser::l2, Options::Normaliser::none, Options::Normaliser::count}) {
      const Options options{.kernel = Options::Kernel::taylor, .order = order, .normaliser = normaliser};
      attention<double>({q.view, k.view, v.view}, options, Form::reference, {.o = o.view}, context);
      attention_kronecker<double>({q.view, k.view, v.view}, options, {.o = r.view});
      EXPECT_LT((distance<double>(r.view, o.view)), 1e-10) << "order " << order;
    }
  try {
    attention_kronecker<double>({q.view, k.view, v.view}, {.clamp = 5, .kernel = Options::Kernel::taylor}, {.o = r.view});
    FAIL() << "nothing thrown";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "attention_kronecker: expected causal kernel=taylor without clamp, window, sinks and log_forget");
  }
}

TEST(Attention, TaylorKernelGoesToSoftmaxAsTheOrderGrows) {
  Data<double> q(1, 20, 1, 4, 1), k(1, 20, 1, 4, 2), v(1, 20, 1, 4, 3), o(1, 20, 1, 4, 4), r(1, 20, 1, 4, 5);
  Context context(1);
  attention<double>({q.view, k.view, v.view}, {}, Form::chunk, {.o = o.view}, context);
  double before = INFINITY;
  for (int order : {2, 4, 8, 16, 32}) {
    attention<double>({q.view, k.view, v.view}, {.kernel = Options::Kernel::taylor, .order = order}, Form::chunk, {.o = r.view},
                      context);
    const double now = distance<double>(r.view, o.view);
    EXPECT_LT(now, before);
    before = now;
  }
  EXPECT_LT(before, 1e-13);
}

TEST(Attention, ForgettingOverALongWayIsExact) {
  // Prefix sums reach −1e6 here; only their differences matter.
  const Index L = 300;
  Data<float> q(1, L, 1, 8, 1), k(1, L, 1, 8, 2), v(1, L, 1, 8, 3), o(1, L, 1, 8, 4), r(1, L, 1, 8, 5), f(1, L, 1, 1, 6);
  for (Index t = 0; t < L; ++t) f.values[std::size_t(t)] = t % 3 == 0 ? -1e4f : t % 3 == 1 ? -50.0f : -0.01f;
  const View<const float, 3> forget{f.values.data(), {1, L, 1}, {L, 1, 1}};
  Context context(1);
  attention<float>({q.view, k.view, v.view, forget}, {}, Form::reference, {.o = r.view}, context);
  attention<float>({q.view, k.view, v.view, forget}, {}, Form::chunk, {.o = o.view}, context);
  EXPECT_LT((distance<float>(o.view, r.view)), 20 * std::numeric_limits<float>::epsilon());
}

TEST(Attention, RefusesWhatMakesNoSense) {
  Data<float> q(1, 4, 2, 3, 1), k(1, 4, 2, 3, 2), v(1, 4, 2, 5, 3), o(1, 4, 2, 5, 4), narrow(1, 4, 2, 2, 5), three(1, 4, 3, 3, 6),
      few(1, 3, 2, 3, 7), few_v(1, 3, 2, 5, 8);
  std::vector<float> gate(8, 0.5f);
  const View<const float, 3> per_head{gate.data(), {1, 4, 2}, {8, 2, 1}};
  Context context(1);
  const auto error = [&](const AttentionInputs<float>& in, const Options& options, Form form = Form::chunk) -> std::string {
    try {
      attention<float>(in, options, form, {.o = o.view}, context);
    } catch (const Error& e) {
      return e.what();
    }
    return "nothing thrown";
  };
  const AttentionInputs<float> fine{q.view, k.view, v.view};
  EXPECT_EQ(error({q.view, {}, v.view}, {}), "attention: expected q, k, v and o, got an absent one");
  EXPECT_EQ(error({q.view, narrow.view, v.view}, {}), "attention: expected k of size 3 on axis 3, got 2");
  EXPECT_EQ(error({q.view, k.view, few_v.view}, {}), "attention: expected v of size 4 on axis 1, got 3");
  EXPECT_EQ(error({q.view, three.view, v.view}, {}), "attention: expected heads that divide the largest count 3, got 2");
  EXPECT_EQ(error({q.view, few.view, few_v.view}, {}), "attention: expected S >= T = 4 keys when causal, got 3");
  EXPECT_EQ(error(fine, {.clamp = -kInfinity}), "attention: expected clamp > -inf, got -inf");
  EXPECT_EQ(error(fine, {.clamp = std::numeric_limits<double>::quiet_NaN()}), "attention: expected clamp > -inf, got nan");
  EXPECT_EQ(error(fine, {.clamp = -1e300}), "attention: expected clamp > -inf, got -1e+300") << "-inf in float";
  EXPECT_EQ(error(fine, {.window = -1}), "attention: expected window >= 0, got -1");
  EXPECT_EQ(error(fine, {.sinks = -2}), "attention: expected sinks >= 0, got -2");
  EXPECT_EQ(error(fine, {.kernel = Options::Kernel::taylor, .order = -1}), "attention: expected order from 0 to 1000, got -1");
  EXPECT_EQ(error(fine, {.kernel = Options::Kernel::taylor, .order = 1001}),
            "attention: expected order from 0 to 1000, got 1001");
  EXPECT_EQ(error(fine, {.eps = -1.0}), "attention: expected eps >= 0, got -1");
  EXPECT_EQ(error(fine, {.normaliser = Options::Normaliser::gate}),
            "attention: expected a gate with normaliser=gate and only there");
  EXPECT_EQ(error({q.view, k.view, v.view, per_head}, {.direction = Options::Direction::bidirectional}),
            "attention: expected no log_forget with causal=false");
  EXPECT_EQ(error(fine, {.direction = Options::Direction::bidirectional, .sinks = 1}),
            "attention: expected sinks = 0 with causal=false, got 1");
  EXPECT_EQ(error(fine, {.direction = Options::Direction::bidirectional}, Form::step),
            "attention: expected a form other than step with causal=false");
  const std::vector<std::int64_t> offsets{0, 5};
  EXPECT_EQ(error({.q = q.view, .k = k.view, .v = v.view, .offsets = offsets}, {}),
            "attention: expected offsets from 0 to T = 4, got 0 to 5");
}

}  // namespace
}  // namespace isomer
