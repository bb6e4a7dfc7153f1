// Many executors over one model.
#include "isomer/models/executor.h"

#include <gtest/gtest.h>

#include <thread>

#include "isomer/models/testing.h"

namespace isomer {
namespace {

using testing::Data;
using testing::SmallModel;

constexpr Index kTokens = 9, kPrompt = 5;

ModelConfig hybrid() { return testing::hybrid_config(kTokens); }

/// The loss of a batch, the predictions, and the logits of a stream after each token.
std::vector<float> all_of(const Model<float>& model, const Data& data) {
  Context context(1);
  Executor<float> executor(model, context);
  const ModelResult result = executor.loss(data.input());
  std::vector<float> all{float(result.loss)};
  all.insert(all.end(), result.predicted.begin(), result.predicted.end());
  ModelState<float> state = model.start(1);
  const std::span tokens(data.tokens);
  const auto add = [&](View<const float, 2> logits) { all.insert(all.end(), logits.data, logits.data + logits.size()); };
  add(executor.prefill(state, tokens.first(kPrompt)));
  for (Index t = kPrompt; t < kTokens; ++t) add(executor.step(state, tokens.subspan(std::size_t(t), 1)));
  return all;
}

TEST(Executor, FourThreadsRunOneModelAndGetTheSameBits) {
  const SmallModel<float> small(hybrid());
  std::vector<Data> data;
  std::vector<std::vector<float>> want;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    data.emplace_back(small.model.config(), 2, kTokens, seed);
    want.push_back(all_of(small.model, data.back()));
  }
  EXPECT_NE(want[0], want[1]);
  for (int round = 0; round < 8; ++round) {
    std::vector<std::vector<float>> got(data.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < data.size(); ++i) threads.emplace_back([&, i] { got[i] = all_of(small.model, data[i]); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(got, want) << "round " << round;
  }
}

TEST(Executor, TrainsAsItsTapeDoes) {
  const SmallModel<double> small(hybrid());
  const Data data(small.model.config(), 2, kTokens);
  Context context(1);
  Tape<double> tape(context);
  const double want = small.model.loss(tape, data.input()).loss;
  tape.backward();
  const std::vector<double> gradient(small.parameters.all()[0].gradient().begin(), small.parameters.all()[0].gradient().end());

  const SmallModel<double> other(hybrid());
  Executor<double> executor(other.model, context, Record::yes);
  EXPECT_EQ(executor.loss(data.input()).loss, want);
  executor.backward();
  EXPECT_TRUE(std::ranges::equal(other.parameters.all()[0].gradient(), gradient));
}

}  // namespace
}  // namespace isomer
