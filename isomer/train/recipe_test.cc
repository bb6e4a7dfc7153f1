#include "isomer/train/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/mixers/fingerprint.h"
#include "isomer/mixers/preset.h"
#include "isomer/train/session.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

const char* const kSmall = R"([model]
layers = ["mlstm", "sliding-window*2"]
repeat = 2
[mixer.sliding-window]
window = 16
[task]
name = "mqar"
length = 64
[train]
steps = 10
lr = 3e-3
)";

std::string error_of(const std::string& text, const Overrides& overrides = {}) {
  return tests::error_of([&] { (void)parse_recipe(parse_toml(text, "small.toml"), overrides); });
}

TEST(Recipe, ReadsEveryTableAndKeepsDefaults) {
  const Recipe recipe = parse_recipe(parse_toml(kSmall, "small.toml"), {"train.batch=7", "mixer.all.heads=2"});
  EXPECT_EQ(layers_of(recipe.model),
            (std::vector<std::string>{"mlstm", "sliding-window", "sliding-window", "mlstm", "sliding-window", "sliding-window"}));
  EXPECT_EQ(recipe.task, "mqar");
  EXPECT_EQ(recipe.task_settings, (Settings{{"length", "64"}}));
  EXPECT_EQ(recipe.mixers.at("sliding-window"), (Settings{{"window", "16"}}));
  EXPECT_EQ(recipe.mixers.at("all"), (Settings{{"heads", "2"}}));
  EXPECT_EQ(recipe.train.steps, 10);
  EXPECT_EQ(recipe.train.lr, 3e-3);
  EXPECT_EQ(recipe.train.batch, 7);
  EXPECT_EQ(recipe.train.schedule, "cosine");
}

TEST(Recipe, ReadsBackWhatItWrites) {
  const Recipe recipe = parse_recipe(parse_toml(kSmall, "small.toml"), {"train.beta2=0.1234567890123", "model.tied=false"});
  const std::string text = to_toml(recipe);
  const Recipe again = parse_recipe(parse_toml(text, "again.toml"));
  EXPECT_EQ(to_toml(again), text);
  EXPECT_EQ(again.train.beta2, 0.1234567890123);
  EXPECT_FALSE(again.model.tied);
}

TEST(Recipe, WritesNumbersAsNumbers) {
  const Overrides overrides{"mixer.mlstm.block=none", "task.seed=7", "task.separator=007", "mixer.all.rope_base=1e-3",
                            "task.on=true"};
  const std::string text = to_toml(parse_recipe(parse_toml(kSmall, "small.toml"), overrides));
  for (const char* line : {"\nwindow = 16\n", "\nseed = 7\n", "\nseparator = \"007\"\n", "\nrope_base = 0.001\n", "\non = true\n",
                           "\nblock = \"none\"\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  EXPECT_EQ(to_toml(parse_recipe(parse_toml(text, "again.toml"))), text);
}

TEST(Recipe, TakesShortKeysAndExponents) {
  const Recipe recipe = parse_recipe(parse_toml(kSmall, "small.toml"), {"lr=1e-4", "steps=1e3", "width=64", "seed=3"});
  EXPECT_EQ(recipe.train.lr, 1e-4);
  EXPECT_EQ(recipe.train.steps, 1000);
  EXPECT_EQ(recipe.model.width, 64);
  EXPECT_EQ(recipe.train.seed, 3u);
}

TEST(Recipe, AShortenedRunWarmsUpForTheSameShare) {
  const std::string text = std::string(kSmall) + "warmup = 8\n";
  const auto warmup = [&](const Overrides& overrides) {
    return parse_recipe(parse_toml(text, "small.toml"), overrides).train.warmup;
  };
  EXPECT_EQ(warmup({}), 8);
  EXPECT_EQ(warmup({"steps=9"}), 8) << "it still fits";
  EXPECT_EQ(warmup({"steps=5"}), 4);
  EXPECT_EQ(warmup({"steps=1"}), 0);
  EXPECT_EQ(warmup({"steps=5", "warmup=7"}), 7) << "that is what was asked for, and is refused later";
}

TEST(Recipe, OptionsForAllMustBeThoseOfALayer) {
  const std::string text = std::string(kSmall) + "[mixer.all]\nheads = 2\nwindow = 8\n";
  const auto all = [&](const Overrides& overrides) {
    return parse_recipe(parse_toml(text, "small.toml"), overrides).mixers.at("all");
  };
  EXPECT_EQ(all({}).size(), 2u);
  EXPECT_EQ(all({"layers=gla"}), (Settings{{"heads", "2"}})) << "the file's were for its own layers";
  EXPECT_EQ(all({"layers=gla", "mixer.all.window=9"}).size(), 2u) << "asked for, and refused later";
}

TEST(Recipe, PatchesHavePositionsUnlessItSaysOtherwise) {
  const auto positions = [](const Overrides& overrides, TaskKind kind) {
    const Recipe recipe = parse_recipe(parse_toml("[task]\nname = \"mqar\"\n", "small.toml"), overrides);
    return model_of(recipe, {.kind = kind, .length = 16, .vocabulary = 8, .classes = 4, .features = 9}).positions;
  };
  EXPECT_TRUE(positions({}, TaskKind::vectors_class));
  EXPECT_FALSE(positions({"model.positions=false"}, TaskKind::vectors_class));
  EXPECT_FALSE(positions({}, TaskKind::tokens));
  EXPECT_TRUE(positions({"positions=true"}, TaskKind::tokens));
}

TEST(Recipe, ResolvesToTheSameMixers) {
  for (const Preset* preset : presets()) {
    const std::string name(preset->name);
    Recipe plain = parse_recipe(parse_toml(kSmall, "small.toml"), {"model.layers=" + name + "," + name});
    if (std::ranges::any_of(options_of(*preset, {}), [](const MixerOption& option) { return option.name == "heads"; }))
      plain.mixers["all"]["heads"] = "2";
    plain.mixers.erase("sliding-window");
    const Recipe all = resolved(plain);
    EXPECT_EQ(to_toml(resolved(all)), to_toml(all)) << name;
    const TaskShape task{.length = 64, .vocabulary = 8, .classes = 8};
    const ModelConfig want = model_of(plain, task), got = model_of(all, task);
    ASSERT_EQ(got.layers.size(), want.layers.size());
    for (Index layer = 0; layer < Index(want.layers.size()); ++layer)
      EXPECT_EQ(graph::dump(layer_graph(got, layer)), graph::dump(layer_graph(want, layer))) << name;
  }
  const Recipe recipe = resolved(parse_recipe(parse_toml(kSmall, "small.toml"), {"mixer.all.heads=2", "model.width=64"}));
  EXPECT_FALSE(recipe.mixers.contains("all"));
  EXPECT_EQ(recipe.mixers.at("mlstm").at("heads"), "2");
  EXPECT_EQ(recipe.mixers.at("mlstm").at("key"), "16");
  EXPECT_FALSE(recipe.mixers.at("mlstm").contains("rope_base"));
  EXPECT_EQ(recipe.task_settings.at("pairs"), "4");
  EXPECT_EQ(tests::error_of([&] { (void)resolved(parse_recipe(parse_toml(kSmall, "small.toml"), {"task.pears=1"})); }),
            "--set: mqar: unknown option pears, did you mean pairs?");
  // No config is printed that train refuses.
  const auto refused = [](const Overrides& settings) {
    return tests::error_of([&] { (void)resolved(parse_recipe(parse_toml(kSmall, "small.toml"), settings)); });
  };
  EXPECT_EQ(refused({"train.warmup=100", "train.steps=10"}), "--set: schedule: expected warmup from 0 to steps = 10, got 100");
  EXPECT_EQ(refused({"train.batch=2", "train.accumulate=3"}),
            "--set: expected train.accumulate from 1 to train.batch = 2, got 3");
}

TEST(Recipe, NamesTheLineAndTheNearestKeyOfAMistake) {
  EXPECT_EQ(error_of("[task]\nname = \"mqar\"\n[train]\nstesp = 3\n"),
            "small.toml:4: unknown key train.stesp, did you mean train.steps?");
  EXPECT_EQ(error_of(kSmall, {"train.lrr=1"}), "--set: unknown key train.lrr, did you mean train.lr?");
  EXPECT_EQ(error_of(kSmall, {"step=2"}), "--set: unknown key step, did you mean steps?");
  EXPECT_EQ(error_of(kSmall, {"nonsense=2"}), "--set: unknown key nonsense");
  EXPECT_EQ(error_of(kSmall, {"pairs=2"}), "--set: unknown key pairs, did you mean task.pairs?");
  EXPECT_EQ(error_of(kSmall, {"heads=2"}), "--set: unknown key heads, did you mean mixer.all.heads?");
  EXPECT_EQ(error_of("[task]\nname = \"mqar\"\n[train]\nsteps = 0\n"),
            "small.toml:4: expected a whole number of at least 1 for train.steps, got 0");
  EXPECT_EQ(error_of("[task]\nname = \"mqar\"\n[model]\nmlp = \"swigl\"\n"),
            "small.toml:4: expected one of none, gelu, swiglu, channel-mix for model.mlp, got swigl, did you mean swiglu?");
  EXPECT_EQ(error_of("[task]\nname = \"mqar\"\n[model]\ntied = 1\n"),
            "small.toml:4: expected true or false for model.tied, got 1");
  EXPECT_EQ(error_of("[task]\nname = \"mqar\"\n[train]\nlr = [1]\n"),
            "small.toml:4: expected one value for train.lr, got a list");
  EXPECT_EQ(error_of("[task]\nname = \"mqar\"\n[train]\nclip = -1\n"),
            "small.toml:4: expected a finite number of at least 0 for train.clip, got -1");
  EXPECT_EQ(error_of(kSmall, {"lr=inf"}), "--set: expected a finite number of at least 0 for train.lr, got inf");
  EXPECT_EQ(error_of("[train]\nsteps = 3\n"), "small.toml: expected task.name, got none");
  EXPECT_EQ(error_of(kSmall, {"model.layers=gla*0"}),
            "model.layers: expected PRESET or PRESET*N with N from 1 to 1000, got gla*0");
  EXPECT_EQ(error_of(kSmall, {"model.repeat=9223372036854775807"}),
            "model.layers: expected at most 1000 layers, got 3 times 9223372036854775807");
  EXPECT_EQ(error_of(kSmall, {"model.layers=gla,gla", "model.repeat=9223372036854775807"}),
            "model.layers: expected at most 1000 layers, got 2 times 9223372036854775807");
  EXPECT_EQ(error_of(kSmall, {"steps"}), "--set: expected key=value, got steps");
  EXPECT_EQ(error_of("[task\n").rfind("small.toml:1: ", 0), 0u);
  EXPECT_EQ(error_of("[task]\nname = \"mqar\"\nday = 2020-01-01\n"),
            "small.toml:3: expected text, a number, true or false for task.day");
}

TEST(Recipe, PutsThePlaceInFrontOfOthersMessages) {
  const Recipe recipe = parse_recipe(parse_toml(kSmall, "small.toml"));
  EXPECT_EQ(tests::error_of([&] { fail_in_recipe(recipe, {"task"}, "mqar: expected an even length, got 65"); }),
            "small.toml:8: mqar: expected an even length, got 65");
}

TEST(Recipe, BlamesTheLineThatAMessageIsAbout) {
  const auto error = [](const std::string& text, const Overrides& overrides = {}) {
    return tests::error_of([&] { (void)resolved(parse_recipe(parse_toml(text, "r.toml"), overrides)); });
  };
  const std::string task = "[task]\nname = \"mqar\"\n";
  // An option of all mixers, not the list of layers.
  EXPECT_EQ(error(task + "[model]\nwidth = 16\nlayers = [\"gla\"]\n[mixer.all]\nheads = 3\n").substr(0, 13), "r.toml:7: gla");
  // A preset that is none is a mistake of the list, whatever else is said of mixers.
  EXPECT_EQ(error(task + "[model]\nlayers = [\"glaa\"]\n[mixer.all]\nheads = 2\n"),
            "r.toml:4: unknown preset glaa, did you mean gla?");
  const Recipe recipe = parse_recipe(parse_toml(task + "test_length = 4\nlength = 6\nalphabet = 3\n", "r.toml"));
  const auto blamed = [&](const std::string& what) { return tests::error_of([&] { fail_in_recipe(recipe, {"task"}, what); }); };
  // Whole words, the first that is named, and the first line where none is.
  EXPECT_EQ(blamed("expected a test_length of 6"), "r.toml:3: expected a test_length of 6");
  EXPECT_EQ(blamed("expected a length below test_length"), "r.toml:4: expected a length below test_length");
  EXPECT_EQ(blamed("expected lengths"), "r.toml:2: expected lengths");
  // The option whose value is quoted, be it of the file or of the command line.
  const std::string text = "[task]\nname = \"text\"\nlength = 9\npath = \"/nowhere/text\"\n";
  const auto missing = [&](const Overrides& overrides) {
    return tests::error_of([&] { (void)task_of(parse_recipe(parse_toml(text, "r.toml"), overrides)); });
  };
  EXPECT_EQ(missing({"task.length=4"}), "r.toml:4: cannot read /nowhere/text: No such file or directory");
  EXPECT_EQ(missing({"task.path=/nowhere/else"}), "--set: cannot read /nowhere/else: No such file or directory");
}

TEST(Recipe, KnowsWhatDiffersAndWhatMay) {
  const std::string text = "[task]\nname = \"text\"\npath = \"/a/./b\"\n[mixer.softmax]\nheads = 2\n";
  const auto with = [&](const Overrides& overrides) { return parse_recipe(parse_toml(text, "r.toml"), overrides); };
  EXPECT_EQ(with({}).task_settings.at("path"), "/a/b");
  EXPECT_TRUE(with({"task.path=c"}).task_settings.at("path").starts_with("/"));
  EXPECT_TRUE(changes(with({}), with({})).empty());
  const std::vector<RecipeChange> found = changes(with({}), with({"train.steps=7", "mixer.softmax.heads=4", "task.length=9"}));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].key + " " + found[0].before + " " + found[0].after, "mixer.softmax.heads 2 4");
  EXPECT_EQ(found[1].key + " " + found[1].before + " " + found[1].after, "train.steps 1000 7");
  EXPECT_EQ(found[2].key + " " + found[2].before + " " + found[2].after, "task.length nothing 9");
  for (const char* key : {"train.steps", "train.keep", "task.path"}) EXPECT_TRUE(may_change(key)) << key;
  for (const char* key : {"train.lr", "train.seed", "task.length", "model.width"}) EXPECT_FALSE(may_change(key)) << key;
}

}  // namespace
}  // namespace isomer
