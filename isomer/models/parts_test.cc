// A batch in parts, one after the other or each with a model of its own: their gradients add up to those of the whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "isomer/models/testing.h"
#include "isomer/nn/optimiser.h"

namespace isomer {
namespace {
using testing::Data;
using testing::small_config;
using testing::SmallModel;

constexpr Index kBatch = 7, kTokens = 9;
// Of unequal sizes, and the last with another share of labels that count.
constexpr std::array<Index, 4> kCuts{0, 1, 4, kBatch};

struct Case {
  ModelConfig config;
  Data data;

  explicit Case(ModelKind kind) : config(small_config(kind)), data((config.dropout = 0.3, config), kBatch, kTokens) {
    if (!labels_tokens(kind)) data.lengths = {1, 9, 3, 9, 5, 2, 7};
    if (!data.labels.empty()) std::fill(data.labels.end() - Index(data.labels.size()) / 4, data.labels.end(), -100);
  }
  /// Runs sequences begin … end − 1 forward and backward; returns their share of the mean loss.
  double run(SmallModel<double>& small, Index begin, Index end, Context& context) const {
    Tape<double> tape(context);
    const ModelInput whole = data.input();
    const double count = double(count_of(config, whole));
    const ModelResult result =
        small.model.loss(tape, part_of(whole, begin, end - begin),
                         {.seed = 5, .step = 3, .dropout = true, .recompute = begin == 1, .first = begin, .count = count});
    tape.backward();
    return result.loss * double(result.count) / count;
  }
};

constexpr std::array kKinds{ModelKind::language, ModelKind::classifier, ModelKind::encoder,
                            ModelKind::vision,   ModelKind::regression, ModelKind::autoencoder};

TEST(Parts, HaveTheGradientsOfTheWhole) {
  Context context(2);
  for (const ModelKind kind : kKinds) {
    const Case one(kind);
    SmallModel<double> whole(one.config), parts(one.config);
    const double want = one.run(whole, 0, kBatch, context);
    double got = 0;
    for (std::size_t i = 0; i + 1 < kCuts.size(); ++i) got += one.run(parts, kCuts[i], kCuts[i + 1], context);
    EXPECT_NEAR(got, want, 1e-13) << name_of(kind);
    for (const Parameter<double>& p : whole.parameters.all()) {
      const std::span<const double> a = p.gradient(), b = parts.parameters.find(p.name()).gradient();
      ASSERT_EQ(a.size(), b.size()) << p.name();
      for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-13) << name_of(kind) << " " << p.name();
    }
  }
}

TEST(Parts, AddUpInOneArrayOverModels) {
  Context context(1);
  const OptimiserOptions options{.groups = {{.match = "embedding.*"}, {.match = "layers.0.*"}}};
  for (const ModelKind kind : {ModelKind::language, ModelKind::autoencoder}) {
    const Case one(kind);
    SmallModel<double> whole(one.config), a(one.config), b(one.config);
    const Optimiser<double> of_whole(whole.parameters, options), of_a(a.parameters, options), of_b(b.parameters, options);
    (void)one.run(whole, 0, kBatch, context);
    (void)one.run(a, 0, 4, context);
    (void)one.run(b, 4, kBatch, context);
    const auto want = whole.parameters.gradient_groups(), left = a.parameters.gradient_groups(),
               right = b.parameters.gradient_groups();
    ASSERT_EQ(want.size(), 3U);
    for (std::size_t group = 0; group < want.size(); ++group) {
      ASSERT_EQ(left[group].size(), want[group].size());
      double largest = 0;
      for (std::size_t i = 0; i < want[group].size(); ++i) {
        EXPECT_NEAR(left[group][i] + right[group][i], want[group][i], 1e-13) << name_of(kind);
        largest = std::max(largest, std::abs(want[group][i]));
      }
      EXPECT_GT(largest, 1e-6) << "group " << group;
    }
  }
}

TEST(Parts, WithoutLabelsHaveNoGradient) {
  Context context(1);
  Case one(ModelKind::language);
  std::ranges::fill(one.data.labels, -100);
  one.data.labels[0] = 3;
  SmallModel<double> small(one.config);
  EXPECT_GT(one.run(small, 0, 1, context), 0);
  std::vector<double> before;
  for (const Parameter<double>& p : small.parameters.all()) before.insert(before.end(), p.gradient().begin(), p.gradient().end());
  EXPECT_EQ(one.run(small, 1, kBatch, context), 0);
  std::vector<double> after;
  for (const Parameter<double>& p : small.parameters.all()) after.insert(after.end(), p.gradient().begin(), p.gradient().end());
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace isomer
