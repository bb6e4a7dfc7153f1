#include "isomer/autograd/laws.h"

#include <gtest/gtest.h>

#include "isomer/autograd/linear.h"
#include "isomer/autograd/testing.h"
#include "isomer/autograd/views.h"
#include "isomer/base/error.h"

namespace isomer {
namespace {
using namespace ops;
using testing::expect_gradients;
using testing::random_values;
using D = double;
using Vars = std::span<const Var<D>>;
using Op = testing::Op;

// Seven tokens in chunks of three; heads in groups.
constexpr Index kB = 2, kT = 7, kH = 4, kK = 3, kV = 5;

testing::Values rows(Index heads, Index size, std::uint64_t seed) { return random_values({kB, kT, heads, size}, seed); }
testing::Values decays(const Shape4& shape, std::uint64_t seed) { return random_values(shape, seed, -0.6, 0.2); }

/// Every form has the gradients of central differences.
void expect_gradients_of_forms(const std::vector<testing::Values>& inputs,
                               const std::function<Var<D>(Tape<D>&, Vars, Form)>& op) {
  for (const Form form : {Form::automatic, Form::reference, Form::chunk}) {
    SCOPED_TRACE(name_of(form));
    expect_gradients(inputs, [&](Tape<D>& tape, Vars in) { return op(tape, in, form); });
  }
}

TEST(LawOps, AttentionHasTheGradientsOfItsEquation) {
  expect_gradients_of_forms({rows(4, kK, 1), rows(2, kK, 2), rows(1, kV, 3), decays({kB, kT, 1, kH}, 4)},
                            [](Tape<D>& tape, Vars in, Form form) {
                              return attention<D>(tape, {.q = in[0], .k = in[1], .v = in[2], .log_forget = in[3]}, {}, form);
                            });
  expect_gradients_of_forms({rows(2, kK, 1), rows(2, kK, 2), rows(2, kV, 3), random_values({kB, kT, 2, 1}, 4, 0.5, 0.1)},
                            [](Tape<D>& tape, Vars in, Form form) {
                              return attention<D>(tape, {.q = in[0], .k = in[1], .v = in[2], .gate = in[3]},
                                                  {.normaliser = AttentionOptions::Normaliser::gate}, form);
                            });
}

TEST(LawOps, AttentionReadsKeysFromBefore) {
  expect_gradients_of_forms(
      {random_values({1, 3, 2, kK}, 1), random_values({1, 8, 1, kK}, 2), random_values({1, 8, 2, kV}, 3)},
      [](Tape<D>& tape, Vars in, Form form) { return attention<D>(tape, {.q = in[0], .k = in[1], .v = in[2]}, {}, form); });
}

TEST(LawOps, ScalarDecayHasTheGradientsOfItsEquation) {
  expect_gradients_of_forms({rows(1, kK, 1), rows(2, kK, 2), rows(4, kV, 3), decays({kB, kT, 1, kH}, 4), rows(kH, 1, 5)},
                            [](Tape<D>& tape, Vars in, Form form) {
                              const ScalarDecayVars<D> vars{in[0], in[1], in[2], in[3], in[4]};
                              return scalar_decay<D>(tape, vars, {.chunk = 3}, {}, form);
                            });
}

TEST(LawOps, DecaysOfEachHeadSumTheirGradientsOverTokens) {
  for (const Shape4& shape : {Shape4{1, 1, 1, kH}, Shape4{1, 1, kH, 1}, Shape4{1, 1, 1, 1}, Shape4{kB, 1, 1, kH}})
    expect_gradients({rows(kH, kK, 1), rows(kH, kK, 2), rows(kH, kV, 3), decays(shape, 4)}, [](Tape<D>& tape, Vars in) {
      return scalar_decay<D>(tape, {.q = in[0], .k = in[1], .v = in[2], .log_decay = in[3]}, {.chunk = 3});
    });
}

TEST(LawOps, ChannelDecayHasTheGradientsOfItsEquation) {
  for (const Shape4& shape : {Shape4{kB, kT, kH, kK}, Shape4{1, 1, kH, kK}, Shape4{kB, kT, 1, kK}})
    expect_gradients_of_forms({rows(4, kK, 1), rows(2, kK, 2), rows(4, kV, 3), decays(shape, 4)},
                              [](Tape<D>& tape, Vars in, Form form) {
                                return channel_decay<D>(tape, {in[0], in[1], in[2], in[3]}, {.chunk = 3}, {}, form);
                              });
  expect_gradients_of_forms(
      {rows(4, kK, 1), rows(4, kK, 2), rows(4, kV, 3), decays({kB, kT, kH, kK}, 4), random_values({1, 1, kH, kK}, 5)},
      [](Tape<D>& tape, Vars in, Form form) {
        return channel_decay<D>(tape, {in[0], in[1], in[2], in[3], in[4]},
                                {.read = ChannelDecayOptions::Read::before, .chunk = 3}, {}, form);
      });
}

TEST(LawOps, DeltaHasTheGradientsOfItsEquation) {
  expect_gradients_of_forms(
      {rows(4, kK, 1), rows(2, kK, 2), rows(4, kV, 3), random_values({kB, kT, 1, kH}, 4, 0.8, 0.2), decays({kB, kT, kH, 1}, 5)},
      [](Tape<D>& tape, Vars in, Form form) {
        return delta<D>(tape, {.q = in[0], .k = in[1], .v = in[2], .beta = in[3], .log_decay = in[4]},
                        {.l2norm = true, .chunk = 3}, {}, form);
      });
  expect_gradients_of_forms({rows(kH, kK, 1), rows(kH, kK, 2), rows(kH, kV, 3), decays({kB, kT, kH, kK}, 4),
                             random_values({kB, kT, kH, kK}, 5, 0, 0.4), random_values({kB, kT, kH, kK}, 6, 0, 0.4)},
                            [](Tape<D>& tape, Vars in, Form form) {
                              return delta<D>(tape,
                                              {.q = in[0], .k = in[1], .v = in[2], .log_decay = in[3], .a = in[4], .b = in[5]},
                                              {.chunk = 3}, {}, form);
                            });
}

TEST(LawOps, ScanHasTheGradientsOfItsEquation) {
  constexpr Index N = 5;
  expect_gradients_of_forms({decays({kB, kT, 1, N}, 1), rows(1, N, 2)}, [](Tape<D>& tape, Vars in, Form form) {
    return scan<D>(tape, {in[0], in[1]}, {.chunk = 3}, {}, form);
  });
  expect_gradients_of_forms({decays({1, 1, 1, N}, 1), rows(1, N, 2), random_values({1, 1, 1, N}, 3), rows(1, N, 4)},
                            [](Tape<D>& tape, Vars in, Form form) {
                              const Var<D> y = scan<D>(tape, {in[0], in[1], in[2], in[3]}, {.chunk = 3}, {}, form);
                              EXPECT_EQ(y.shape(), (Shape4{kB, kT, 1, 2 * N}));
                              return y;
                            });
}

TEST(LawOps, ScanS6HasTheGradientsOfItsEquation) {
  constexpr Index C = 3, N = 2;
  expect_gradients_of_forms({rows(1, C, 1), random_values({kB, kT, 1, C}, 2, 0.5, 0.1), decays({1, 1, C, N}, 3), rows(1, N, 4),
                             rows(1, N, 5), random_values({1, 1, 1, C}, 6)},
                            [](Tape<D>& tape, Vars in, Form form) {
                              return scan_s6<D>(tape, {in[0], in[1], in[2], in[3], in[4], in[5]}, {.chunk = 3}, {}, form);
                            });
}

TEST(LawOps, ReadPiecesOfOneProjectionAndAddToWhatArrived) {
  // q, k, v and the gate are pieces of one value; q is also k of the second call, and the gate is used twice.
  expect_gradients({random_values({2, 5, 1, 3}, 1), random_values({1, 1, 20, 3}, 2)}, [](Tape<D>& tape, Vars in) {
    std::array<Var<D>, 4> p;
    split<D>(tape, linear(tape, in[0], in[1]), std::array<Index, 4>{6, 6, 6, 2}, p);
    const Var<D> q = heads(p[0], 2), k = heads(p[1], 2), v = heads(p[2], 2);
    const Var<D> first = scalar_decay<D>(tape, {.q = q, .k = k, .v = v, .log_input = p[3]});
    return delta<D>(tape, {.q = first, .k = q, .v = v, .beta = p[3]}, {.l2norm = true});
  });
}

TEST(LawOps, TakeOneValueForTwoInputs) {
  expect_gradients({rows(2, 3, 1)},
                   [](Tape<D>& tape, Vars in) { return attention<D>(tape, {.q = in[0], .k = in[0], .v = in[0]}); });
}

TEST(LawOps, ComputeNoGradientThatNobodyWants) {
  Context context(1);
  Tape<D> tape(context);
  testing::Values x = rows(2, 3, 1), w = rows(2, 3, 2);
  const Var<D> constant = tape.input(contiguous(x.data.data(), {kB, kT, 2, 3}));
  const Var<D> wanted = tape.input(contiguous(w.data.data(), {kB, kT, 2, 3}), true);
  EXPECT_FALSE((attention<D>(tape, {constant, constant, constant}).wanted()));
  const Var<D> o = attention<D>(tape, {constant, wanted, constant});
  tape.backward(o);
  EXPECT_EQ(constant.slot->grad, nullptr);
  EXPECT_NE(wanted.slot->grad, nullptr);
}

TEST(LawOps, CarryTheirStateAndKeepTheInitialOneForGradients) {
  const auto [K, V] = std::array<Index, 2>{3, 4};
  testing::Values start = random_values({1, 2, K, V}, 9);
  // Gradients start from the state before the call, which the call overwrites.
  expect_gradients(
      {random_values({1, 5, 2, K}, 1), random_values({1, 5, 2, K}, 2), random_values({1, 5, 2, V}, 3), decays({1, 5, 2, K}, 4)},
      [&, K = K, V = V](Tape<D>& tape, Vars in) {
        std::vector<D> state = start.data;
        const View<D, 4> view = contiguous(state.data(), {1, 2, K, V});
        const Var<D> o = channel_decay<D>(tape, {in[0], in[1], in[2], in[3]}, {.chunk = 2}, view);
        EXPECT_NE(state, start.data);
        return o;
      });
}

TEST(LawOps, AttentionWithAStateGivesWhatTheWholeSequenceGives) {
  Context context(1);
  Tape<D> tape(context, Record::no);
  testing::Values q = rows(4, kK, 1), k = rows(2, kK, 2), v = rows(2, kV, 3), f = decays({kB, kT, 1, kH}, 4);
  const auto var = [&](testing::Values& x) { return tape.input(contiguous(x.data.data(), x.shape)); };
  const AttentionVars<D> all{var(q), var(k), var(v), var(f)};
  const AttentionOptions options{.window = 4, .sinks = 1};
  const Var<D> want = attention<D>(tape, all, options);
  AttentionStream<D> state(AttentionState<D>({.B = kB, .H = kH, .Gk = 2, .Gv = 2, .K = kK, .V = kV}, options));
  for (const auto& [begin, end] : {std::array<Index, 2>{0, 3}, {3, 4}, {4, kT}}) {
    const auto tokens = [begin = begin, end = end](Var<D> x) { return Tape<D>::alias(x, slice(x.value, 1, begin, end - begin)); };
    const Var<D> got = attention<D>(tape, {tokens(all.q), tokens(all.k), tokens(all.v), tokens(all.log_forget)}, options, state);
    for (Index b = 0; b < kB; ++b)
      for (Index t = begin; t < end; ++t)
        for (Index h = 0; h < kH; ++h)
          for (Index d = 0; d < kV; ++d) EXPECT_NEAR(got.value(b, t - begin, h, d), want.value(b, t, h, d), 1e-14);
  }
}

TEST(LawOps, AreTimedAsLaws) {
  Context context(1);
  Tape<D> tape(context);
  Profile profile;
  tape.profile(&profile);
  testing::Values x = rows(2, 3, 1);
  const Var<D> q = tape.input(contiguous(x.data.data(), {kB, kT, 2, 3}), true);
  const Var<D> o = attention<D>(tape, {q, q, q});
  const double forward = profile.seconds(Profile::Kind::law);
  EXPECT_GT(forward, 0.0);
  tape.backward(o);
  EXPECT_GT(profile.seconds(Profile::Kind::law), forward);
}

TEST(LawOps, RefuseGatesThatFitNothing) {
  Context context(1);
  Tape<D> tape(context);
  testing::Values x = rows(2, 3, 1);
  const Var<D> q = tape.input(contiguous(x.data.data(), {kB, kT, 2, 3}));
  EXPECT_THROW((void)scalar_decay<D>(tape, {.q = q, .k = q, .v = q, .log_decay = q}), Error);
}

}  // namespace
}  // namespace isomer
