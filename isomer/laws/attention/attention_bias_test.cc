// Biases by distance: what the suite of all laws does not ask. Streams, the limit where a bias is a forget gate, threads, errors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "isomer/base/error.h"
#include "isomer/base/rng.h"
#include "isomer/laws/attention/attention.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

using Options = AttentionOptions;
constexpr auto kBoth = Options::Direction::bidirectional;

template <class T>
struct Data {
  Index B, L, H, K = 8, V = 5, N;
  std::vector<T> q, k, v, g, bias;

  Data(Index own_B, Index own_L, Index own_H, Index own_N) : B(own_B), L(own_L), H(own_H), N(own_N) {
    Rng rng(3);
    const auto draw = [&](std::vector<T>& to, Index size) {
      for (Index i = 0; i < size; ++i) to.push_back(T(rng.normal()));
    };
    draw(q, B * L * H * K), draw(k, B * L * H * K), draw(v, B * L * H * V), draw(g, B * L * H * V), draw(bias, H * N);
  }
  [[nodiscard]] View<const T, 4> rows(const std::vector<T>& x, Index D) const { return contiguous(x.data(), {B, L, H, D}); }
  [[nodiscard]] AttentionInputs<T> inputs() const {
    return {.q = rows(q, K), .k = rows(k, K), .v = rows(v, V), .bias = contiguous(bias.data(), {H, N})};
  }
  [[nodiscard]] std::vector<T> run(const Options& options, Form form, Context& context) const {
    std::vector<T> o(v.size());
    attention<T>(inputs(), options, form, {.o = contiguous(o.data(), {B, L, H, V})}, context);
    return o;
  }
  [[nodiscard]] std::vector<T> bias_gradient(const Options& options, Context& context) const {
    std::vector<T> o(v.size()), grad(bias.size(), T(NAN));
    AttentionTape<T> tape;
    const AttentionOutputs<T> out{.o = contiguous(o.data(), {B, L, H, V}), .tape = &tape};
    attention<T>(inputs(), options, Form::chunk, out, context);
    attention_vjp<T>(inputs(), options, Form::chunk, out, rows(g, V), {.bias = contiguous(grad.data(), {H, N})}, context);
    return grad;
  }
};

template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double e = std::abs(double(a[i]) - double(b[i]));
    worst = e <= worst ? worst : e;
  }
  return worst;
}

TEST(AttentionBias, OfEqualStepsIsAForgetGate) {
  Data<double> data(2, 37, 3, 37);
  std::vector<double> forget(std::size_t(2 * 37 * 3)), o(data.v.size());
  for (Index h = 0; h < 3; ++h)
    for (Index i = 0; i < 37; ++i) {
      data.bias[std::size_t(h * 37 + i)] = -0.1 * double(h + 1) * double(36 - i);  // 36 − i tokens away
      for (const Index b : {0, 1}) forget[std::size_t((b * 37 + i) * 3 + h)] = -0.1 * double(h + 1);
    }
  Context context(2);
  AttentionInputs<double> in = data.inputs();
  in.bias = {};
  in.log_forget = contiguous(forget.data(), {2, 37, 3});
  for (const Form form : {Form::reference, Form::step, Form::chunk, Form::parallel}) {
    attention<double>(in, {}, form, {.o = contiguous(o.data(), {2, 37, 3, 5})}, context);
    EXPECT_LT(distance(data.run({}, form, context), o), 1e-13) << name_of(form);
  }
}

TEST(AttentionBias, OfWhatIsFarAwayIsThatOfTheLastPlace) {
  Data<double> data(1, 40, 2, 5), longer(1, 40, 2, 41);
  for (Index h = 0; h < 2; ++h)
    for (Index i = 0; i < 41; ++i)
      longer.bias[std::size_t(h * 41 + i)] = data.bias[std::size_t(h * 5 + std::clamp<Index>(i - 18, 0, 4))];
  Context context(1);
  EXPECT_EQ(data.run({.direction = kBoth}, Form::chunk, context), longer.run({.direction = kBoth}, Form::chunk, context));
}

TEST(AttentionBias, StreamsOnAGrowingCacheAndOnARing) {
  for (const Index window : {0, 1, 9}) {
    const Data<float> data(1, 70, 2, 6);
    const Options options{.window = window};
    Context context(2);
    const std::vector<float> want = data.run(options, Form::reference, context);
    std::vector<float> got(want.size());
    AttentionState<float> state({1, 2, 2, 2, 8, 5}, options);
    Index begin = 0;
    for (const Index tokens : {1, 1, 20, 3, 1, 14, 30}) {
      const auto at = [&](auto view) { return slice(view, 1, begin, tokens); };
      AttentionInputs<float> in = data.inputs();
      in.q = at(in.q), in.k = at(in.k), in.v = at(in.v);
      attention_stream<float>(in, options, state, {.o = at(contiguous(got.data(), {1, 70, 2, 5}))}, context);
      begin += tokens;
    }
    EXPECT_LT(distance(got, want), 40 * double(std::numeric_limits<float>::epsilon())) << "window " << window;
  }
}

TEST(AttentionBias, HasTheSameGradientForAnyThreads) {
  Context one(1), two(2), seven(7);
  for (const Index H : {1, 3, 9})
    for (const Options& options : {Options{}, Options{.direction = kBoth}, Options{.direction = kBoth, .window = 70}}) {
      const Data<float> data(2, 300, H, 65);
      const std::vector<float> want = data.bias_gradient(options, one);
      EXPECT_TRUE(std::ranges::all_of(want, [](float x) { return std::isfinite(x); }));
      for (int repeat = 0; repeat < 5; ++repeat)
        for (Context* many : {&two, &seven}) EXPECT_EQ(data.bias_gradient(options, *many), want) << H << " heads";
    }
}

TEST(AttentionBias, SaysWhatWasExpected) {
  const Data<float> data(1, 6, 2, 4);
  Context context(1);
  std::vector<float> o(data.v.size());
  const auto error = [&](const AttentionInputs<float>& in, const Options& options) {
    return tests::error_of([&] {
      attention<float>(in, options, Form::chunk, {.o = contiguous(o.data(), {1, 6, 2, 5})}, context);
    });
  };
  AttentionInputs<float> in = data.inputs();
  EXPECT_EQ(error(in, {.kernel = Options::Kernel::taylor}), "attention: expected kernel=exp with a bias, got taylor");
  EXPECT_EQ(error(in, {.window = 3, .sinks = 1}), "attention: expected sinks = 0 with a bias, got 1");
  in.bias.shape = {1, 4};
  EXPECT_EQ(error(in, {}), "attention: expected a bias [H = 2, N >= 1], got [1, 4]");
  in.bias.shape = {2, 0};
  EXPECT_EQ(error(in, {}), "attention: expected a bias [H = 2, N >= 1], got [2, 0]");
}

}  // namespace
}  // namespace isomer
