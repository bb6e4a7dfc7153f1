// As examples_test.cc, for ops on a tape.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <list>
#include <vector>

#include "isomer/autograd/laws.h"
#include "isomer/autograd/linear.h"
#include "isomer/autograd/recompute.h"
#include "isomer/autograd/tape.h"
#include "isomer/autograd/tokens.h"
#include "isomer/nn/parameters.h"

namespace isomer {
namespace {

constexpr Index T = 9, H = 2, K = 4;

/// Numbers that are used by one tape.
struct Numbers {
  std::list<std::vector<float>> memory = {};

  Var<float> of(Tape<float>& tape, const Shape4& shape, bool wanted = false) {
    memory.emplace_back(std::size_t(size_of(shape)), 0.5f);
    return tape.input(contiguous(memory.back().data(), shape), wanted);
  }
};

TEST(Examples, Tapes) {
  Context context;
  Parameters<float> parameters;
  const Parameter<float>& parameter = parameters.add({.name = "weight", .shape = {3, K}});
  std::ranges::fill(parameter.values(), 1.0f);
  std::vector<float> numbers(std::size_t(T * K), 0.5f);
  const Var<float> weight = parameter.var, x{contiguous(numbers.data(), {1, T, 1, K})};
  // from isomer/autograd/tape.h
  Tape<float> tape(context);
  Var<float> y = ops::linear(tape, x, weight);  // ops are functions: forward and gradient stand side by side
  tape.backward(y);                             // fills the gradients of every parameter that y depends on
  tape.clear();                                 // gives all memory back; the next step allocates nothing
  // end
  EXPECT_EQ(parameter.gradient()[0], 0.5f * T);
}

TEST(Examples, Profiles) {
  Context context;
  Tape<float> tape(context);
  Numbers numbers;
  const auto loss = [&](Tape<float>& on) {
    return ops::linear(on, numbers.of(on, {1, T, 1, K}), numbers.of(on, {1, 1, 1, K}, true));
  };
  const Stopwatch watch;
  // from isomer/autograd/profile.h
  Profile profile;
  tape.profile(&profile);
  tape.backward(loss(tape));
  const double other = 1 - profile.total() / watch.seconds();  // the share of everything else
  // end
  EXPECT_GT(other, 0);
  EXPECT_LT(other, 1);
}

TEST(Examples, Recomputation) {
  Context context;
  Tape<float> tape(context);
  Numbers numbers;
  const Var<float> x = numbers.of(tape, {1, T, 1, K}), weight = numbers.of(tape, {1, 1, K, K}, true);
  const auto block = [weight](Tape<float>& t, Var<float> in) { return ops::linear(t, in, weight); };
  // from isomer/autograd/recompute.h
  const Var<float> y = ops::recompute<float>(tape, {x}, [&block](Tape<float>& t, auto in) { return block(t, in[0]); });
  // end
  tape.backward(y);
  EXPECT_EQ(weight.slot->grad[0], 0.5f * T);
}

TEST(Examples, Sequences) {
  Context context;
  Tape<float> tape(context, Record::no);
  Numbers numbers;
  const Var<float> x = numbers.of(tape, {1, T, 1, K});
  Var<float> state = numbers.of(tape, {1, 1, 1, K});
  state.value(0, 0, 0, 0) = 2;
  // from isomer/autograd/sequences.h
  Var<float> y = ops::shift(tape, x);
  y = ops::shift(tape, x, {.state = &state});
  const std::vector<std::int64_t> offsets{0, 5, 5, 9};
  y = ops::shift(tape, x, {.sequences = {.offsets = offsets}});
  // end
  EXPECT_EQ(state.value(0, 0, 0, 0), 0.5f);
  EXPECT_EQ(y.value(0, 4, 0, 0), 0.5f);
  EXPECT_EQ(y.value(0, 5, 0, 0), 0.0f);
}

TEST(Examples, LawsOnTapes) {
  Context context;
  Tape<float> tape(context);
  Numbers numbers;
  const Var<float> q = numbers.of(tape, {1, T, H, K}), k = q, v = q, f = numbers.of(tape, {1, T, H, K});
  const Var<float> beta = numbers.of(tape, {1, T, H, 1});
  {
    // from isomer/autograd/laws.h
    const Var<float> o = ops::channel_decay<float>(tape, {.q = q, .k = k, .v = v, .log_decay = f});
    // end
    EXPECT_EQ(o.dim(3), K);
  }
  // from isomer/autograd/law.h
  const auto bound = find_law("delta").bind({{"l2norm", "true"}});
  const auto in = ops::law_vars<float>(bound->law(), {{"q", q}, {"k", k}, {"v", v}, {"beta", beta}});
  Var<float> o = ops::law(tape, *bound, in);
  // end
  EXPECT_EQ(o.dim(1), T);
}

}  // namespace
}  // namespace isomer
