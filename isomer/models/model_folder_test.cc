#include "isomer/models/model_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

#include "isomer/io/safetensors.h"
#include "isomer/io/text.h"
#include "isomer/models/testing.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
namespace fs = std::filesystem;
using testing::Data;
using testing::small_config;
using testing::SmallModel;
using tests::error_of;

class ModelFolder : public ::testing::Test {
 protected:
  /// A language model of eleven tokens.
  [[nodiscard]] static ModelFiles files(std::uint64_t seed = 1) {
    const SmallModel<float> small(small_config(ModelKind::language), seed);
    return {.config = to_json(small.model.config()), .weights = small.parameters.tensors()};
  }
  [[nodiscard]] std::string path(const char* name) const { return folder_.path / name; }

  tests::TemporaryFolder folder_;
};

TEST_F(ModelFolder, GivesTheModelThatWasSaved) {
  ModelConfig config = small_config(ModelKind::classifier);
  config.labels = {"a", "b", "c", "d", "e"};
  const SmallModel<float> small(config);
  const std::vector<std::string> words{"w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9", "w10"};
  const LoadedModel first(config, small.parameters.tensors(), word_tokenizer(words));
  save_model(path("a"), first);
  const auto loaded = load_model(path("a"));
  EXPECT_EQ(loaded->model.config().labels, config.labels);
  EXPECT_EQ(loaded->tokenizer->encode("w10 w0"), (std::vector<std::int64_t>{10, 0}));
  save_model(path("b"), *loaded);
  for (const char* file : {"config.json", "model.safetensors", "tokenizer.json"})
    EXPECT_EQ(read_text(path("a") + "/" + file), read_text(path("b") + "/" + file)) << file;
}

TEST_F(ModelFolder, MayHoldOtherTypesThanTheModel) {
  const ModelFiles plain = files();
  const SmallModel<float> stored(small_config(ModelKind::language), 1, Type::bf16);
  ModelFiles rounded{.config = plain.config, .weights = {}};
  for (const auto& [name, weight] : plain.weights)
    rounded.weights.emplace(name, weight.cast(stored.parameters.find(name).storage()));
  write_model_files(path("plain"), plain);
  write_model_files(path("rounded"), rounded);
  const auto narrow = load_model(path("plain"), Type::bf16), wide = load_model(path("rounded"));
  EXPECT_EQ(narrow->parameters.find("embedding.weight").storage(), Type::bf16);
  EXPECT_EQ(wide->parameters.find("embedding.weight").storage(), Type::f32);
  Context context(1);
  Tape<float> tape(context, Record::no);
  const Data data(narrow->model.config(), 2, 9);
  EXPECT_EQ(narrow->model.loss(tape, data.input()).loss, wide->model.loss(tape, data.input()).loss);
}

TEST_F(ModelFolder, LeavesWeightsInTheirFile) {
  ModelFiles halves = files();
  for (auto& [name, weight] : halves.weights)
    if (weight.shape().size() == 2) weight = weight.cast(Type::f16);
  write_model_files(path("a"), halves);
  const std::string before = read_text(path("a") + "/model.safetensors");
  const auto loaded = load_model(path("a"), Type::f16);
  const auto first = [](const LoadedModel& model) {
    return model.parameters.tensors().at("embedding.weight").cast(Type::f32).data<float>()[0];
  };
  Index bytes = 0;
  for (const Parameter<float>& p : loaded->parameters.all()) bytes += p.bytes();
  // The projections of an input are one product and stand in another order in files; the others are used where they are.
  EXPECT_LT(loaded->parameters.own_bytes(), bytes / 2);
  EXPECT_EQ(load_model(path("a"), Type::bf16)->parameters.find("embedding.weight").storage(), Type::bf16);
  // What is written to them reaches neither the file nor another model of it.
  const float was = first(*loaded);
  const MutableTensorView numbers = loaded->parameters.find("embedding.weight").numbers();
  std::fill_n(numbers.data, loaded->parameters.find("embedding.weight").bytes(), std::byte{0});
  EXPECT_EQ(first(*loaded), 0);
  EXPECT_EQ(read_text(path("a") + "/model.safetensors"), before);
  EXPECT_EQ(first(*load_model(path("a"), Type::f16)), was);
  // A file that is replaced, or gone, leaves a model as it was.
  write_model_files(path("a"), files(2));
  fs::remove_all(path("a"));
  EXPECT_EQ(first(*loaded), 0);
  EXPECT_EQ(loaded->parameters.find("norm.weight").values()[0], files().weights.at("norm.weight").data<float>()[0]);
}

TEST_F(ModelFolder, KeepsTheTypeOfItsFile) {
  ModelFiles halves = files();
  for (auto& [name, weight] : halves.weights) weight = weight.cast(Type::f16);
  write_model_files(path("f16"), halves);
  write_model_files(path("f32"), files());
  EXPECT_EQ(load_model(path("f16"), std::nullopt)->parameters.find("embedding.weight").storage(), Type::f16);
  EXPECT_EQ(load_model(path("f32"), std::nullopt)->parameters.find("embedding.weight").storage(), Type::f32);
  EXPECT_EQ(load_model(path("f16"))->parameters.find("embedding.weight").storage(), Type::f32);
}

TEST_F(ModelFolder, MayBeShards) {
  ModelFiles all = files();
  write_model_files(path("whole"), all);
  write_model_files(path("cut"), all);
  fs::remove(path("cut") + "/model.safetensors");
  std::string map;
  Tensors first, second;
  for (auto& [name, weight] : all.weights) {
    const bool early = name < "layers";
    map += (map.empty() ? "" : ",") + ("\"" + name + "\":\"" + (early ? "one" : "two") + ".safetensors\"");
    (early ? first : second).emplace(name, std::move(weight));
  }
  write_safetensors(path("cut") + "/one.safetensors", first);
  write_safetensors(path("cut") + "/two.safetensors", second);
  write_text(path("cut") + "/model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
  ASSERT_FALSE(first.empty() || second.empty());
  save_model(path("again"), *load_model(path("cut")));
  EXPECT_EQ(read_text(path("again") + "/model.safetensors"), read_text(path("whole") + "/model.safetensors"));
}

TEST_F(ModelFolder, ComputesWhatTheModelDid) {
  SmallModel<float> small(small_config(ModelKind::vision));
  const Data data(small.model.config(), 2, 9);
  Context context(1);
  Tape<float> tape(context, Record::no);
  const double want = small.model.loss(tape, data.input()).loss;
  write_model_files(path("a"), {.config = to_json(small.model.config()), .weights = small.parameters.tensors()});
  const auto loaded = load_model(path("a"));
  EXPECT_EQ(loaded->model.loss(tape, data.input()).loss, want);
  EXPECT_EQ(loaded->tokenizer, nullptr) << "it reads vectors";
}

TEST_F(ModelFolder, IsTheLastCheckpointOfARun) {
  for (const Index step : {9, 10}) write_model_files(checkpoint_folder(path("run"), step), files(std::uint64_t(step)));
  fs::create_directories(path("run") + "/checkpoints/writing-11");
  EXPECT_EQ(checkpoint_steps(path("run")), (std::vector<Index>{9, 10}));
  EXPECT_EQ(find_model(path("run")), path("run") + "/checkpoints/step-10");
  const auto loaded = load_model(path("run"));
  EXPECT_EQ(loaded->parameters.find("embedding.weight").values()[0], files(10).weights.at("embedding.weight").data<float>()[0]);
  EXPECT_EQ(loaded->tokenizer->name(), "numbers");
}

TEST_F(ModelFolder, RefusesWhatIsNone) {
  EXPECT_EQ(error_of([&] { (void)load_model(path("no")); }),
            path("no") + ": expected the folder of a run or of a model (with config.json), got neither");
  fs::create_directories(path("run"));
  std::ofstream(path("run") + "/recipe.toml") << "";
  EXPECT_EQ(error_of([&] { (void)load_model(path("run")); }), path("run") + ": expected a run with a checkpoint, got none");
  write_model_files(path("a"), files());
  std::ofstream(path("a") + "/config.json") << "{";
  EXPECT_EQ(error_of([&] { (void)load_model(path("a")); }),
            path("a") +
                "/config.json: expected JSON, got a parse error at line 1, column 2: syntax error while parsing object key - "
                "unexpected end of input; expected string literal");
  fs::remove(path("a") + "/model.safetensors");
  EXPECT_EQ(error_of([&] { (void)load_model(path("a")); }),
            "cannot read " + path("a") + "/model.safetensors: No such file or directory");
  ModelFiles other = files();
  other.weights.erase("norm.weight");
  write_model_files(path("b"), other);
  EXPECT_EQ(error_of([&] { (void)load_model(path("b")); }),
            path("b") + "/model.safetensors: parameters: expected norm.weight [8], found none");
}

TEST_F(ModelFolder, RefusesWeightsThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    ModelFiles spoiled = files();
    spoiled.weights.at("layers.1.mlp.up.weight").data<float>()[3] = bad;
    write_model_files(path("a"), spoiled);
    EXPECT_THROW((void)load_model(path("a")), NotFinite);
    EXPECT_EQ(error_of([&] { (void)load_model(path("a")); }),
              path("a") + "/model.safetensors: expected finite weights, got others in layers.1.mlp.up.weight");
  }
  // In every place of a word of bits, and behind the last whole one.
  for (const Type type : {Type::bf16, Type::f16, Type::f32})
    for (const Index size : {Index(8), Index(7)})
      for (Index place = 0; place < size; ++place) {
        Tensor numbers(Type::f32, {size});
        std::fill_n(numbers.data<float>(), size, -std::numeric_limits<float>::max());
        if (type == Type::f16) std::fill_n(numbers.data<float>(), size, -65504.0f);
        if (type == Type::bf16) std::fill_n(numbers.data<float>(), size, -0x1.fep127f);
        const Tensor good = numbers.cast(type);
        EXPECT_NO_THROW(require_finite("a", {{"x", view_of(good)}}));
        numbers.data<float>()[place] = place % 2 == 0 ? std::numeric_limits<float>::infinity() : -std::nanf("");
        const Tensor bad = numbers.cast(type);
        EXPECT_THROW(require_finite("a", {{"x", view_of(bad)}}), NotFinite) << name_of(type) << " " << place << " of " << size;
      }
  ModelFiles wide = files();
  wide.weights.at("norm.weight") = wide.weights.at("norm.weight").cast(Type::f64);
  wide.weights.at("norm.weight").data<double>()[7] = std::numeric_limits<double>::quiet_NaN();
  write_model_files(path("a"), wide);
  EXPECT_THROW((void)load_model(path("a")), NotFinite);
}

}  // namespace
}  // namespace isomer
