#include "isomer/train/convert.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "isomer/train/transfer.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
using Fate = ConvertedParameter::Fate;

const char* const kRecipe = R"([model]
width = 16
layers = ["softmax", "sliding-window", "softmax"]
[mixer.all]
heads = 2
[mixer.softmax]
rope_base = 500
[mixer.sliding-window]
rope_base = 500
window = 8
[task]
name = "mqar"
vocabulary = 32
length = 24
pairs = 2
[train]
steps = 40
batch = 8
lr = 1e-2
)";

Recipe recipe_with(const Overrides& overrides) { return parse_recipe(parse_toml(kRecipe, "old.toml"), overrides); }

/// One layer of a preset.
Recipe single(const std::string& preset, const Settings& options = {}) {
  Recipe recipe = recipe_with({});
  recipe.model.layers = {preset};
  recipe.mixers = {{"all", {{"heads", "2"}}}, {preset, options}};
  return recipe;
}

Conversion planned(const Recipe& recipe, const ConversionRequest& request) {
  Context context(1);
  return plan_conversion(Session(recipe, context), request);
}

std::string error_of(const Recipe& recipe, const ConversionRequest& request) {
  return tests::error_of([&] { (void)planned(recipe, request); });
}

/// The logits after every token of an example, one after the other.
std::vector<float> logits_of(Session& session, Context& context) {
  std::vector<float> all;
  Tape<float> tape(context, Record::no);
  ModelState<float> state = session.model().start(1);
  for (std::int64_t token = 1; token < 20; ++token) {
    const View<const float, 2> logits = session.model().step(tape, {&token, 1}, state);
    all.insert(all.end(), logits.data, logits.data + logits.size());
  }
  return all;
}

/// A run and what became of it.
struct Converted {
  Context context{2};
  Session from;
  Conversion plan;
  Session to;
  std::vector<ConvertedParameter> fates;

  Converted(const Recipe& old, const ConversionRequest& request, Index steps = 0)
      : from(old, context), plan(plan_conversion(from, request)), to(plan.recipe, plan.model, context) {
    for (Index i = 0; i < steps; ++i) (void)from.step();
    fates = take_weights(from, to, plan.layers);
  }
  [[nodiscard]] bool same(const std::string& name) {
    const auto old = from.parameters().find(name).values(), now = to.parameters().find(name).values();
    return std::equal(old.begin(), old.end(), now.begin(), now.end());
  }
  [[nodiscard]] std::vector<std::string> names(Fate fate) const {
    std::vector<std::string> all;
    for (const ConvertedParameter& p : fates)
      if (p.fate == fate) all.push_back(p.name);
    return all;
  }
};

TEST(Convert, ToTheSameMixerChangesNoBit) {
  Converted c(recipe_with({}), {.mixer = "softmax", .layers = {0, 2}}, 3);
  EXPECT_EQ(c.names(Fate::kept).size(), c.fates.size());
  EXPECT_EQ(logits_of(c.to, c.context), logits_of(c.from, c.context));
  EXPECT_EQ(c.to.steps_done(), 0);
}

TEST(Convert, KeepsProjectionsAndEverythingElse) {
  for (const char* mixer : {"hedgehog", "luna", "linear-elu", "gla"}) {
    Converted c(recipe_with({}), {.mixer = mixer}, 3);
    EXPECT_EQ(c.names(Fate::kept).size(), 12U) << mixer;
    EXPECT_TRUE(c.names(Fate::dropped).empty()) << mixer;
    for (const char* part : {"q", "k", "v", "o"})
      EXPECT_TRUE(c.same("layers.1.mixer." + std::string(part) + ".weight")) << mixer << " " << part;
    for (const char* name : {"embedding.weight", "layers.0.norm1.weight", "layers.2.mlp.up.weight", "norm.weight"})
      EXPECT_TRUE(c.same(name)) << mixer << " " << name;
    EXPECT_EQ(layers_of(c.to.recipe().model), (std::vector<std::string>(3, mixer)));
    EXPECT_EQ(c.to.recipe().mixers.at(mixer).at("position"), "rope");
    EXPECT_EQ(c.to.recipe().mixers.at(mixer).at("rope_base"), "500");
    EXPECT_FALSE(c.to.recipe().mixers.contains("softmax"));
    // What the folder will hold reads back as the same model.
    const Recipe again = parse_recipe(parse_toml(to_toml(c.to.recipe()), "new.toml"));
    EXPECT_EQ(to_json(model_of(again, c.to.task().shape())), to_json(c.to.config()));
  }
}

TEST(Convert, SaysWhatIsNewAndWhatIsDropped) {
  const Converted c(recipe_with({}),
                    {.mixer = "hedgehog", .layers = {1}, .overrides = {"mixer.hedgehog.shared=true", "train.steps=7"}});
  EXPECT_EQ(c.names(Fate::fresh), (std::vector<std::string>{"layers.1.mixer.features.weight", "layers.1.mixer.features.bias"}));
  EXPECT_EQ(c.fates[4].init.kind, graph::Init::Kind::identity);
  EXPECT_EQ(c.to.recipe().train.steps, 7);
  EXPECT_EQ(layers_of(c.to.recipe().model), (std::vector<std::string>{"softmax", "hedgehog", "softmax"}));
  const Converted back(single("gla"), {.mixer = "softmax"});
  EXPECT_EQ(back.names(Fate::dropped).size(), 5U);  // decay down, up and its bias, gate, norm
}

TEST(Convert, MakesKeepsAndDropsWhatLayersShare) {
  const std::vector<std::string> bounds{"shared.hgrn2.bounds"};
  const auto shared = [](const Converted& c, Fate fate) {
    std::vector<std::string> all;
    for (const ConvertedParameter& p : c.fates)
      if (p.layer < 0 && p.fate == fate) all.push_back(p.name);
    return all;
  };
  Converted there(recipe_with({}), {.mixer = "hgrn2"});
  EXPECT_EQ(shared(there, Fate::fresh), bounds);
  // Each layer learns by itself, so what they share stays.
  EXPECT_EQ(transfer(there.from, there.to, there.fates, {.steps = 2}, there.context).size(), 3U);
  for (const float x : there.to.parameters().find(bounds[0]).values()) EXPECT_EQ(x, 0);
  const Recipe all = planned(recipe_with({}), {.mixer = "hgrn2"}).recipe;
  EXPECT_EQ(shared(Converted(all, {.mixer = "softmax"}), Fate::dropped), bounds);
  Converted some(all, {.mixer = "softmax", .layers = {1}}, 2);
  EXPECT_TRUE(some.same(bounds[0]));
  EXPECT_TRUE(shared(some, Fate::dropped).empty());
}

TEST(Convert, KnowsWhichLayerIsTheFirstOfItsPreset) {
  Converted there(recipe_with({}), {.mixer = "rwkv7"});
  const std::vector<std::string> fresh = there.names(Fate::fresh);
  EXPECT_EQ(std::ranges::count(fresh, "layers.0.mixer.mix.bias"), 0);
  EXPECT_EQ(std::ranges::count(fresh, "layers.1.mixer.mix.bias"), 1);
  EXPECT_EQ(transfer(there.from, there.to, there.fates, {.steps = 2}, there.context).size(), 3U);
  const Recipe all = planned(recipe_with({}), {.mixer = "rwkv7"}).recipe;
  Converted back(all, {.mixer = "softmax", .layers = {1, 2}}, 2);
  EXPECT_EQ(transfer(back.from, back.to, back.fates, {.steps = 2}, back.context).size(), 2U);
  EXPECT_EQ(
      error_of(all, {.mixer = "softmax", .layers = {0}}),
      "convert: layer 1 (rwkv7) depends on whether it is the first of its preset, which changes: expected --layers with it");
  const Recipe one = planned(recipe_with({}), {.mixer = "rwkv7", .layers = {0}}).recipe;
  Converted two(one, {.mixer = "rwkv7", .layers = {1}});
  EXPECT_EQ(tests::error_of([&] { (void)transfer(two.from, two.to, two.fates, {.steps = 1}, two.context); }),
            "transfer: layer 1 (rwkv7) takes values of layer 0, which stays: expected both among the converted ones");
}

TEST(Convert, GivesEveryHeadTheKeysThatItShared) {
  Converted c(single("softmax", {{"kv_heads", "1"}}), {.mixer = "softmax", .overrides = {"mixer.softmax.kv_heads=2"}}, 2);
  EXPECT_EQ(c.names(Fate::repeated), (std::vector<std::string>{"layers.0.mixer.k.weight", "layers.0.mixer.v.weight"}));
  const std::vector<float> old = logits_of(c.from, c.context), now = logits_of(c.to, c.context);
  for (std::size_t i = 0; i < old.size(); ++i) ASSERT_NEAR(now[i], old[i], 1e-5);
}

TEST(Convert, RefusesWhatItCannotDo) {
  const Recipe recipe = recipe_with({});
  EXPECT_EQ(error_of(recipe, {.mixer = "lunna"}), "unknown preset lunna, did you mean luna?");
  EXPECT_EQ(error_of(recipe, {.mixer = "luna", .layers = {3}}), "convert: expected layers from 0 to 2, got 3");
  const std::string mamba = error_of(recipe, {.mixer = "mamba"});
  EXPECT_TRUE(mamba.starts_with("convert: mamba keeps none of q, k and v of layer 0 (softmax); those that keep q, k, v and o: "))
      << mamba;
  for (const char* able : {"hedgehog", "luna", "linear-elu", "gla", "gated-deltanet", "retnet", "mlstm"})
    EXPECT_NE(mamba.find(able), std::string::npos) << able;
  for (const char* unable : {"mamba2", "s4d", "lru"}) EXPECT_EQ(mamba.find(unable, 40), std::string::npos) << unable;
  EXPECT_EQ(
      error_of(recipe, {.mixer = "luna", .overrides = {"model.width=8"}}),
      "--set: expected a key of the new mixer (mixer.luna.…), of training (train.…) or of the task (task.…), got model.width=8");
  EXPECT_EQ(error_of(recipe, {.mixer = "luna", .overrides = {"mixer.luna.feature=8"}}),
            "luna: unknown option feature, did you mean features?");
  EXPECT_EQ(
      error_of(recipe_with({"mixer.sliding-window.heads=4"}), {.mixer = "luna"}),
      "convert: layers 0 and 1 differ in what the new mixer takes over, and a recipe has one table of options for it: expected "
      "--layers that agree");
  EXPECT_EQ(error_of(recipe, {.mixer = "sliding-window", .layers = {0}, .overrides = {"mixer.sliding-window.window=4"}}),
            "convert: layer 1 is sliding-window already, with other options than the new ones: expected --layers with it");
}

TEST(Transfer, TeachesTheNewLayersWhatTheOldOnesDid) {
  struct Case {
    const char* mixer;
    bool weights;
    double factor;
  };
  for (const Case& x : {Case{"hedgehog", true, 3}, Case{"luna", true, 3}, Case{"gla", false, 2}}) {
    Converted c(recipe_with({}), {.mixer = x.mixer, .layers = {0, 2}}, 40);
    const std::vector<TransferReport> reports = transfer(c.from, c.to, c.fates, {.steps = 60}, c.context);
    ASSERT_EQ(reports.size(), 2U);
    EXPECT_EQ(reports[1].layer, 2);
    for (const TransferReport& r : reports) {
      EXPECT_EQ(r.weights, x.weights);
      EXPECT_LT(r.after, r.before / x.factor) << x.mixer << " layer " << r.layer;
    }
    for (const std::string& name : c.names(Fate::kept)) EXPECT_TRUE(c.same(name)) << name;
  }
}

TEST(Transfer, DoesNotDependOnTheNumberOfThreads) {
  Converted a(recipe_with({}), {.mixer = "luna"}, 2), b(recipe_with({}), {.mixer = "luna"}, 2);
  Context one(1);
  (void)transfer(a.from, a.to, a.fates, {.steps = 3}, one);
  (void)transfer(b.from, b.to, b.fates, {.steps = 3}, b.context);
  for (const Parameter<float>& p : a.to.parameters().all()) {
    const auto other = b.to.parameters().find(p.name()).values();
    EXPECT_TRUE(std::equal(p.values().begin(), p.values().end(), other.begin())) << p.name();
  }
}

TEST(Transfer, SaysThatThereIsNothingToLearn) {
  Converted c(recipe_with({}), {.mixer = "linear-elu"});
  EXPECT_EQ(tests::error_of([&] { (void)transfer(c.from, c.to, c.fates, {.steps = 1}, c.context); }),
            "transfer: the new layer 0 (linear-elu) has nothing to learn: all of its parameters are kept or fixed");
}

}  // namespace
}  // namespace isomer
