// The ends of a model: embedding, losses, dropout.
#include "isomer/autograd/loss.h"

#include <gtest/gtest.h>

#include "isomer/autograd/dropout.h"
#include "isomer/autograd/elementwise.h"
#include "isomer/autograd/embedding.h"
#include "isomer/autograd/linear.h"
#include "isomer/autograd/testing.h"
#include "isomer/autograd/views.h"

namespace isomer {
namespace {
using namespace ops;
using testing::expect_gradients;
using testing::random_values;
using D = double;
using Vars = std::span<const Var<D>>;

constexpr std::array<std::int64_t, 6> kNumbers{2, 0, -1, 3, 2, 2};
const View<const std::int64_t, 2> kLabels = contiguous(kNumbers.data(), {2, 3});

TEST(CrossEntropyOp, HasTheGradientsOfItsEquation) {
  for (const double softcap : {0.0, 2.0})
    expect_gradients({random_values({2, 3, 1, 4}, 1), random_values({1, 1, 5, 4}, 2), random_values({1, 1, 1, 5}, 3)},
                     [&](Tape<D>& tape, Vars in) {
                       // Twice, and by a factor: gradients wait for what arrives.
                       const CrossEntropyVars<D> vars{in[0], in[1], in[2], kLabels};
                       const Var<D> a = linear_cross_entropy(tape, vars, softcap), b = linear_cross_entropy(tape, vars);
                       return add(tape, unary(tape, Unary::square, a), b);
                     });
}

TEST(CrossEntropyOp, TakesSomeTokensOfEverySequence) {
  expect_gradients({random_values({2, 4, 1, 4}, 1), random_values({1, 1, 5, 4}, 2)}, [&](Tape<D>& tape, Vars in) {
    const Var<D> some = Tape<D>::part(in[0], slice(in[0].value, 1, 1, 3));
    LossResult result;
    const Var<D> loss = linear_cross_entropy<D>(tape, {.x = some, .weight = in[1], .labels = kLabels}, 0, &result);
    EXPECT_EQ(result.count, 5);
    EXPECT_DOUBLE_EQ(loss.value(0, 0, 0, 0), result.mean);
    return loss;
  });
}

TEST(CrossEntropyOp, MayShareItsWeightWithTheEmbedding) {
  constexpr std::array<std::int64_t, 6> ids{0, 4, 4, 1, 2, 4};
  expect_gradients({random_values({1, 1, 5, 4}, 1)}, [&](Tape<D>& tape, Vars in) {
    std::array<std::int64_t, 6> own = ids;
    const Var<D> x = unary(tape, Unary::tanh, embedding(tape, contiguous<const std::int64_t>(own.data(), {2, 3}), in[0]));
    own = {};
    return linear_cross_entropy<D>(tape, {.x = x, .weight = in[0], .labels = kLabels});
  });
}

TEST(MeanSquaredErrorOp, HasTheGradientsOfItsEquation) {
  expect_gradients({random_values({2, 3, 2, 4}, 1), random_values({2, 3, 2, 4}, 2)},
                   [](Tape<D>& tape, Vars in) { return unary(tape, Unary::square, mean_squared_error(tape, in[0], in[1])); });
}

TEST(AttentionDivergence, HasTheGradientsOfItsEquation) {
  const auto q = random_values({2, 5, 4, 3}, 1), k = random_values({2, 5, 2, 3}, 2);
  const auto view = [](const testing::Values& x) {
    return contiguous<const D>(x.data.data(), {x.shape[0], x.shape[1], x.shape[2], x.shape[3]});
  };
  using enum AttentionOptions::Direction;
  for (const AttentionOptions& options :
       {AttentionOptions{}, AttentionOptions{.scale = 2, .direction = bidirectional}, AttentionOptions{.window = 2, .sinks = 1}})
    expect_gradients({random_values({2, 5, 4, 6}, 3), random_values({2, 5, 4, 6}, 4)}, [&](Tape<D>& tape, Vars in) {
      const DivergenceVars<D> vars{unary(tape, Unary::exp, in[0]), unary(tape, Unary::exp, in[1]), view(q), view(k)};
      const Var<D> loss = attention_divergence(tape, vars, options);
      EXPECT_GT(loss.value(0, 0, 0, 0), 0);
      return unary(tape, Unary::square, loss);
    });
}

TEST(AttentionDivergence, OfFewerKeysThanQueries) {
  const auto q = random_values({2, 5, 2, 3}, 1), k = random_values({2, 3, 2, 3}, 2);
  const AttentionOptions both{.direction = AttentionOptions::Direction::bidirectional};
  expect_gradients({random_values({2, 5, 2, 6}, 3), random_values({2, 3, 2, 6}, 4)}, [&](Tape<D>& tape, Vars in) {
    const DivergenceVars<D> vars{unary(tape, Unary::exp, in[0]), unary(tape, Unary::exp, in[1]),
                                 contiguous<const D>(q.data.data(), {2, 5, 2, 3}),
                                 contiguous<const D>(k.data.data(), {2, 3, 2, 3})};
    return unary(tape, Unary::square, attention_divergence(tape, vars, both));
  });
}

TEST(AttentionDivergence, IsNothingForEqualWeights) {
  Context context(1);
  Tape<D> tape(context);
  // Keys that are all alike: softmax weighs them equally, as equal features do.
  auto q = random_values({1, 6, 2, 3}, 1), k = random_values({1, 1, 1, 1}, 2), ones = random_values({1, 6, 2, 4}, 3, 1, 0);
  const View<D, 4> equal{k.data.data(), {1, 6, 2, 3}, {0, 0, 0, 0}};
  const Var<D> phi = tape.input(contiguous(ones.data.data(), {1, 6, 2, 4}), true);
  const Var<D> loss = attention_divergence<D>(tape, {phi, phi, contiguous<const D>(q.data.data(), {1, 6, 2, 3}), equal}, {});
  EXPECT_NEAR(loss.value(0, 0, 0, 0), 0, 1e-12);
  // And any keys, once a clamp is below all logits.
  const auto other = random_values({1, 6, 2, 3}, 4);
  const DivergenceVars<D> vars{phi, phi, contiguous<const D>(q.data.data(), {1, 6, 2, 3}),
                               contiguous<const D>(other.data.data(), {1, 6, 2, 3})};
  EXPECT_GT(attention_divergence<D>(tape, vars, {}).value(0, 0, 0, 0), 1e-3);
  EXPECT_NEAR(attention_divergence<D>(tape, vars, {.clamp = -100}).value(0, 0, 0, 0), 0, 1e-12);
}

TEST(DropoutOp, HasTheSameMaskInBothDirections) {
  expect_gradients({random_values({2, 5, 2, 3}, 1)}, [](Tape<D>& tape, Vars in) {
    const Var<D> y = dropout(tape, in[0], {.rate = 0.4, .seed = 3, .stream = 1});
    return multiply(tape, y, dropout(tape, in[0], {.rate = 0.3, .seed = 3, .stream = 2}));
  });
}

}  // namespace
}  // namespace isomer
