#include "isomer/study/pretrained.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "isomer/base/error.h"
#include "tests/error_of.h"

namespace isomer::study {
namespace {
namespace fs = std::filesystem;

std::string golden(const std::string& name) { return (fs::path(ISOMER_SOURCE_DIR) / "tests/goldens/foreign" / name).string(); }

const char* const kRecipe = R"([task]
name = "mqar"
vocabulary = 18
length = 16
pairs = 2
[train]
steps = 60
batch = 8
lr = 2e-3
)";
Recipe recipe_with(const Overrides& overrides) { return parse_recipe(parse_toml(kRecipe, "claim.toml"), overrides); }

TEST(Spearman, IsTheCorrelationOfRanks) {
  EXPECT_DOUBLE_EQ(spearman({1, 2, 3, 4}, {10, 20, 25, 100}), 1);
  EXPECT_DOUBLE_EQ(spearman({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  // Ranks 0, 1.5, 1.5, 3 and 0, 1, 2, 3: 4.5 / √(4.5 · 5).
  EXPECT_DOUBLE_EQ(spearman({1, 2, 2, 3}, {1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5));
  EXPECT_NE(tests::error_of([] { (void)spearman({1}, {1}); }), "no error");
}

TEST(PretrainedClaims, SayWhatFetchesWhatIsMissing) {
  const std::string error = tests::error_of([] { (void)model_folder("no-such-model"); });
  EXPECT_TRUE(error.ends_with("/isomer/models/no-such-model, got no such folder: tools/models no-such-model fetches it"))
      << error;
}

TEST(PretrainedClaims, ConvertToOneMixerOrToSeveral) {
  Context context(1);
  for (const Overrides& layers :
       {Overrides{"model.layers=luna"}, Overrides{"model.layers=hedgehog,sliding-window", "mixer.sliding-window.window=4"},
        Overrides{"model.layers=softmax,linear-elu"}}) {
    const Recipe recipe = recipe_with(layers);
    const auto teacher = pretrained(recipe, golden("llama"), {}, Head::of_task, context);
    EXPECT_EQ(teacher->parameters().fingerprint(), load_model(golden("llama"))->parameters.fingerprint());
    ConvertedModel to = convert_as(recipe, *teacher, context);
    const std::vector<std::string> names = layers_of(recipe.model);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(to.session->config().layers[i].preset, names[std::min(i, names.size() - 1)]);
    const double at_once = distance(*teacher, *to.session, 16, context);
    EXPECT_GT(at_once, 0);
    transfer_new(*teacher, to, 5, context);
    std::vector<double> shares;
    const std::vector<CellPoint> curve = distilled(*teacher, to, recipe.train, context, [&](double share) {
      shares.push_back(share);
      return true;
    });
    ASSERT_GT(curve.size(), 4U);
    EXPECT_LT(curve.back().loss, curve.front().loss);
    EXPECT_EQ(curve.back().step, 60);
    EXPECT_EQ(shares.back(), 1);
  }
}

TEST(PretrainedClaims, StopWhenAsked) {
  Context context(1);
  const Recipe recipe = recipe_with({"model.layers=hedgehog"});
  const auto teacher = pretrained(recipe, golden("llama"), {}, Head::of_task, context);
  ConvertedModel to = convert_as(recipe, *teacher, context);
  EXPECT_EQ(tests::error_of([&] { (void)distilled(*teacher, to, recipe.train, context, [](double) { return false; }); }),
            "stopped");
}

TEST(PretrainedClaims, KeepAnEncoderAsItIs) {
  Context context(1);
  const auto own = pretrained(recipe_with({}), golden("bert-encoder"), {}, Head::own, context);
  EXPECT_EQ(own->config().kind, ModelKind::embedding);
  EXPECT_EQ(own->parameters().fingerprint(), load_model(golden("bert-encoder"))->parameters.fingerprint());
}

TEST(Cells, RunTheirProcedure) {
  const Procedure procedure{.name = "p", .run = [](const Recipe& recipe, Context&, const CellProgress&) {
                              return CellResult{.value = double(recipe.train.steps), .steps = recipe.train.steps};
                            }};
  const Cell cell{.recipe = kRecipe, .overrides = {"model.layers=gla"}, .procedure = &procedure};
  Context context(1);
  const CellResult result = run_cell(cell, context);
  EXPECT_EQ(result.value, 60);
  EXPECT_EQ(result.key, key_of(cell, context.isa()));
  Cell plain = cell;
  plain.procedure = nullptr;
  EXPECT_NE(key_of(plain, context.isa()), result.key);
}

}  // namespace
}  // namespace isomer::study
