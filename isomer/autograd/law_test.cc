// Any law as an op: what the typed ops do not show.
#include "isomer/autograd/law.h"

#include <gtest/gtest.h>

#include "isomer/autograd/testing.h"
#include "isomer/base/error.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
using namespace ops;
using testing::expect_gradients;
using testing::random_values;
using D = double;
using Vars = std::span<const Var<D>>;

constexpr Index kT = 7, kH = 2, kK = 3, kV = 4;

Var<D> tokens(Var<D> x, Index begin, Index end) { return Tape<D>::part(x, slice(x.value, 1, begin, end - begin)); }

/// Inputs of a law with a state [n,H,K,V], and its gates.
struct Subject {
  const char* law;
  Settings settings;
  std::vector<std::pair<std::string_view, Shape4>> gates;
};
const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all{
      {"scalar_decay", {}, {{"log_decay", {1, kT, 1, kH}}}},
      {"scalar_decay", {{"normaliser", "sum"}}, {}},
      {"channel_decay", {}, {{"log_decay", {1, kT, kH, kK}}}},
      {"delta", {{"l2norm", "true"}}, {{"beta", {1, kT, kH, 1}}, {"log_decay", {1, kT, 1, kH}}}},
  };
  return all;
}

/// q, k and v that keep sums positive, then the gates.
std::vector<testing::Values> inputs_of(const Subject& subject) {
  std::vector<testing::Values> all{random_values({1, kT, kH, kK}, 1, 1, 0.2), random_values({1, kT, kH, kK}, 2, 1, 0.2),
                                   random_values({1, kT, kH, kV}, 3)};
  std::uint64_t seed = 4;
  for (const auto& [name, shape] : subject.gates) all.push_back(random_values(shape, seed++, name == "beta" ? 0.8 : -0.5, 0.2));
  return all;
}

/// The inputs by place, of some tokens.
LawVars<D> vars_of(const Law& law, const Subject& subject, Vars in, Index begin, Index end) {
  LawVars<D> vars =
      law_vars<D>(law, {{"q", tokens(in[0], begin, end)}, {"k", tokens(in[1], begin, end)}, {"v", tokens(in[2], begin, end)}});
  for (std::size_t i = 0; i < subject.gates.size(); ++i)
    vars[std::size_t(law.input(subject.gates[i].first))] = tokens(in[3 + i], begin, end);
  return vars;
}

TEST(LawOp, CarriesStatesAsValuesWithTheirGradients) {
  for (const Subject& subject : subjects()) {
    SCOPED_TRACE(subject.law);
    const auto bound = find_law(subject.law).bind(subject.settings);
    const Law& law_of = bound->law();
    // The sequence in two parts: the second starts from the final states of the first, and what it gives depends on them.
    const auto second_half = [&](Tape<D>& tape, Vars in) {
      std::array<Var<D>, kMostTensors> finals;
      const std::span<Var<D>> states = std::span(finals).first(law_of.states().size());
      (void)law<D>(tape, *bound, vars_of(law_of, subject, in, 0, 3), {.finals = states});
      LawVars<D> vars = vars_of(law_of, subject, in, 3, kT);
      for (std::size_t i = 0; i < states.size(); ++i)
        if (states[i].present()) vars[law_of.states()[i].input] = states[i];
      return law<D>(tape, *bound, vars);
    };
    std::vector<testing::Values> inputs = inputs_of(subject);
    expect_gradients(inputs, second_half);
    Context context(1);
    Tape<D> tape(context);
    std::vector<Var<D>> in;
    for (testing::Values& x : inputs) in.push_back(tape.input(contiguous(x.data.data(), x.shape)));
    const Var<D> whole = law<D>(tape, *bound, vars_of(law_of, subject, in, 0, kT)), half = second_half(tape, in);
    for (Index t = 3; t < kT; ++t)
      for (Index h = 0; h < kH; ++h)
        for (Index c = 0; c < kV; ++c) EXPECT_NEAR(half.value(0, t - 3, h, c), whole.value(0, t, h, c), 1e-12);
  }
}

TEST(LawOp, PacksSequences) {
  for (const Subject& subject : subjects()) {
    SCOPED_TRACE(subject.law);
    const auto bound = find_law(subject.law).bind(subject.settings);
    const Law& law_of = bound->law();
    const std::vector<std::int64_t> offsets{0, 3, 3, kT};
    std::vector<testing::Values> inputs = inputs_of(subject);
    const auto packed = [&](Tape<D>& tape, Vars in) {
      return law<D>(tape, *bound, vars_of(law_of, subject, in, 0, kT), {.offsets = offsets});
    };
    expect_gradients(inputs, packed);
    Context context(1);
    Tape<D> tape(context);
    std::vector<Var<D>> in;
    for (testing::Values& x : inputs) in.push_back(tape.input(contiguous(x.data.data(), x.shape)));
    std::array<Var<D>, kMostTensors> finals;
    const Var<D> all = law<D>(tape, *bound, vars_of(law_of, subject, in, 0, kT),
                              {.offsets = offsets, .finals = std::span(finals).first(law_of.states().size())});
    EXPECT_EQ(finals[0].shape(), (Shape4{3, kH, kK, kV})) << "a state for each sequence";
    const Var<D> second = law<D>(tape, *bound, vars_of(law_of, subject, in, 3, kT));
    for (Index t = 3; t < kT; ++t)
      for (Index h = 0; h < kH; ++h)
        for (Index c = 0; c < kV; ++c) EXPECT_NEAR(all.value(0, t, h, c), second.value(0, t - 3, h, c), 1e-12);
  }
}

TEST(LawOp, SaysWhatItExpects) {
  Context context(1);
  Tape<D> tape(context);
  testing::Values x = random_values({1, kT, kH, kK}, 1);
  const Var<D> q = tape.input(contiguous(x.data.data(), x.shape)), wanted = tape.input(contiguous(x.data.data(), x.shape), true);
  EXPECT_EQ(tests::error_of([&] { (void)law_vars<D>(find_law("delta"), {{"bta", q}}); }), "delta: unknown input bta");
  const auto decay = find_law("scalar_decay").bind({});
  EXPECT_EQ(tests::error_of([&] {
              (void)law<D>(tape, *decay, law_vars<D>(decay->law(), {{"q", q}, {"k", q}, {"v", q}, {"log_decay", q}}));
            }),
            "scalar_decay: expected log_decay for [B, T, H] = [1, 7, 2] or [H] = [2], got a value [1, 7, 2, 3]");
  const auto attention = find_law("attention").bind({});
  const auto cache = attention->start(Type::f64, {.B = 1, .H = kH, .K = kK, .V = kK});
  EXPECT_EQ(tests::error_of([&] {
              const LawVars<D> vars = law_vars<D>(attention->law(), {{"q", wanted}, {"k", q}, {"v", q}});
              (void)law<D>(tape, *attention, vars, {.stream = cache.get()});
            }),
            "attention: expected inputs without gradients beside a state, got some that want one");
}

}  // namespace
}  // namespace isomer
