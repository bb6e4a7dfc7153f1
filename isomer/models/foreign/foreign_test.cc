// Tiny models that other libraries made and ran (tools/foreign-goldens): the same outputs, streamed and at once, the same
// gradients by their names, and the same file again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "isomer/base/error.h"
#include "isomer/io/safetensors.h"
#include "isomer/io/text.h"
#include "isomer/models/cost.h"
#include "isomer/models/foreign/architecture.h"
#include "isomer/models/foreign/gguf_model.h"
#include "isomer/models/foreign/testing.h"
#include "isomer/models/logits.h"
#include "isomer/models/model_folder.h"
#include "isomer/models/pretrained.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

namespace fs = std::filesystem;
using testing::Changed;
using testing::distance;
using testing::goldens;
using tests::error_of;
constexpr double kOutputs = 1e-4, kGradients = 1e-3;

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(goldens())) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

class ForeignModel : public ::testing::TestWithParam<std::string> {
 protected:
  ForeignModel() : want_(read_safetensors(folder() + "/expected.safetensors")), model_(load_model(folder())) {
    for (const char* name : {"tokens", "pixels", "inputs", "known", "mask", "types", "targets"})
      if (const auto found = want_.find(name); found != want_.end()) in_.emplace(name, found->second.clone());
  }
  static std::string folder() { return (goldens() / GetParam()).string(); }
  void expect(const Tensors& got, const std::string& name, double limit, double least = 1e-30) {
    const auto want = want_.find(name);
    if (want == want_.end()) return;
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_LE(distance(got.at(name), want->second, least), limit) << name;
  }
  Tensors want_, in_;
  std::unique_ptr<LoadedModel> model_;
  Context context_{1};
};

TEST_P(ForeignModel, ComputesWhatItsLibraryDoes) {
  const bool trains = in_.contains("targets");
  const Tensors got = logits_of(*model_, in_, {.gradients = trains}, context_);
  for (const char* name : {"hidden", "logits", "loss"}) expect(got, name, kOutputs);
  int gradients = 0;
  for (const auto& [name, want] : want_)
    // Some are zero but for rounding: softmax does not see a bias of its keys.
    if (name.starts_with("grad.")) ++gradients, expect(got, name, kGradients, 1e-3);
  EXPECT_TRUE(!trains || gradients > 5) << gradients;
}

TEST_P(ForeignModel, IsAModelOfOursToo) {
  const ModelConfig& config = model_->model.config();
  EXPECT_EQ(cost_of(config, 8).parameters, model_->parameters.trained_size());
  const ModelConfig read = model_config(to_json(config), "config.json");
  EXPECT_EQ(to_json(read), to_json(config));
  const LoadedModel again(read, model_->parameters.tensors(), nullptr);
  EXPECT_EQ(again.parameters.fingerprint(), model_->parameters.fingerprint());
}

TEST_P(ForeignModel, StreamsTheSame) {
  if (model_->model.config().kind != ModelKind::language) GTEST_SKIP() << "reads whole inputs";
  const Tensors got = logits_of(*model_, in_, {.stream = true}, context_);
  for (const char* name : {"hidden", "logits"}) expect(got, name, kOutputs);
}

TEST_P(ForeignModel, IsWrittenWithItsOwnNames) {
  const tests::TemporaryFolder to;
  save_model(to.path.string(), *model_);
  const Tensors before = read_safetensors(folder() + "/model.safetensors"),
                after = read_safetensors((to.path / "model.safetensors").string());
  for (const auto& [name, tensor] : after) {
    ASSERT_TRUE(before.contains(name)) << name;
    EXPECT_LE(distance(tensor, before.at(name)), 1e-6) << name;
  }
  EXPECT_EQ(read_text((to.path / "config.json").string()), read_text(folder() + "/config.json"));
  const auto again = load_model(to.path.string());
  expect(logits_of(*again, in_, {}, context_), "hidden", kOutputs);
}

TEST_P(ForeignModel, WithWeightsInFewerBitsIsTheModelWithRoundedWeights) {
  const auto narrow = load_model(folder(), Type::bf16);
  model_->parameters.assign(narrow->parameters.tensors());
  in_.erase("targets");
  // With what its library was given, and with what is taken where nobody names types.
  for (const bool named : {true, false}) {
    if (!named) in_.erase("types");
    for (const auto& [name, want] : logits_of(*model_, in_, {}, context_))
      EXPECT_LE(distance(logits_of(*narrow, in_, {}, context_).at(name), want, 1e-30), 1e-6) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, ForeignModel, ::testing::ValuesIn(golden_names()), [](const auto& name) {
  std::string word = name.param;
  std::ranges::replace(word, '-', '_');
  return word;
});

// As Python's json writes it, and with it transformers 4: every Mamba-2 that is older than the fifth.
TEST(ForeignConfigs, MayHaveNumbersThatJsonDoesNotHave) {
  const std::string newer = R"({
      "__float__": "Infinity"
    })";
  for (const char* name : {"mamba2", "falcon-h1"}) {
    const Changed changed(name, {});
    const std::string path = (changed.path() / "config.json").string();
    std::string text = read_text((goldens() / name / "config.json").string());
    const std::size_t at = text.find(newer);
    ASSERT_NE(at, std::string::npos) << name;
    text.replace(at, newer.size(), "Infinity");
    write_text(path, text);
    EXPECT_EQ(changed.error(), "no error");
    Context context(1);
    const Tensors in = read_safetensors((goldens() / name / "expected.safetensors").string());
    Tensors tokens;
    tokens.emplace("tokens", in.at("tokens").clone());
    const Tensors before = logits_of(*load_model((goldens() / name).string()), tokens, {}, context),
                  after = logits_of(*load_model(changed.path().string()), tokens, {}, context);
    EXPECT_EQ(distance(before.at("logits"), after.at("logits")), 0) << name;
    const tests::TemporaryFolder to;
    save_model(to.path.string(), *load_model(changed.path().string()));
    EXPECT_EQ(read_text((to.path / "config.json").string()), text) << "who reads it next may be older";
  }
  const ForeignConfig config(R"({"model_type": "a \"Infinity\" NaN", "b": [NaN, -Infinity, "\\"], "c": "-Infinity"})", "c");
  EXPECT_EQ(config.type(), "a \"Infinity\" NaN");
  EXPECT_EQ(config.json().at("b").dump(), R"([{"__float__":"NaN"},{"__float__":"-Infinity"},"\\"])");
  EXPECT_EQ(config.text("c", ""), "-Infinity");
}

TEST(ForeignConfigs, EndWhereTheirGenerationEnds) {
  const Changed changed("llama", {{"eos_token_id", "3"}});
  const auto ends = [&] { return load_model(changed.path().string())->ends; };
  EXPECT_EQ(ends(), std::vector<std::int64_t>{3});
  const std::string path = (changed.path() / "generation_config.json").string();
  write_text(path, R"({"eos_token_id": [4, 5], "temperature": 0.6})");
  EXPECT_EQ(ends(), (std::vector<std::int64_t>{4, 5}));
  for (const char* nothing : {"{}", R"({"eos_token_id": null})"}) {
    write_text(path, nothing);
    EXPECT_EQ(ends(), std::vector<std::int64_t>{3});
  }
  write_text(path, "[]");
  EXPECT_EQ(changed.error(), "generation_config.json: expected an object");
}

TEST(Decoders, AreLeftOutAndWrittenAgain) {
  const std::string folder = (goldens() / "whisper").string();
  const auto model = load_model(folder);
  EXPECT_EQ(left_out(*model), "the decoder is left out: 28 weights below model.decoder.");
  EXPECT_EQ(left_out(*load_model((goldens() / "whisper-encoder").string())), "");
  EXPECT_EQ(left_out(*load_model((goldens() / "llama").string())), "");
  const Tensors before = read_safetensors(folder + "/model.safetensors");
  const tests::TemporaryFolder saved, exported;
  save_model(saved.path.string(), *model);
  EXPECT_EQ(export_model(exported.path.string(), *model, folder), Exported::hugging_face);
  for (const auto& to : {saved.path, exported.path}) {
    const Tensors after = read_safetensors((to / "model.safetensors").string());
    ASSERT_EQ(after.size(), before.size());
    for (const auto& [name, tensor] : before) EXPECT_EQ(distance(after.at(name), tensor), 0) << name;
  }
}

TEST(GgufModels, AreTheFoldersTheyWereMadeOf) {
  const std::string file = (goldens().parent_path() / "gguf/llama.gguf").string();
  const auto model = load_model(file);
  const Tensors want = read_safetensors((goldens() / "llama/expected.safetensors").string());
  Tensors in;
  in.emplace("tokens", want.at("tokens").clone());
  Context context(1);
  EXPECT_LE(distance(logits_of(*model, in, {}, context).at("logits"), want.at("logits")), kOutputs);
  EXPECT_EQ(model->ends, std::vector<std::int64_t>{2});
  EXPECT_EQ(model->parameters.find("embedding.weight").storage(), Type::f32);
  // Where nobody says, matrices are as the file has them; what is read as it is kept has no second copy, but for what
  // is one product here: q, k and v, gate and up.
  const auto as_stored = load_model(file, std::nullopt), narrow = load_model(file, Type::bf16);
  EXPECT_EQ(as_stored->parameters.find("embedding.weight").storage(), Type::f32);
  EXPECT_EQ(narrow->parameters.find("embedding.weight").storage(), Type::bf16);
  Index joined = 0;
  for (const Parameter<float>& one : narrow->parameters.all())
    for (const char* part : {"q.weight", "k.weight", "v.weight", "gate.weight", "up.weight"})
      if (one.name().ends_with(part)) joined += 2 * one.numbers().size();
  EXPECT_EQ(narrow->parameters.own_bytes(), joined);
  EXPECT_EQ(model->tokenizer->encode_input("ab").tokens, (std::vector<std::int64_t>{1, 3, 4, 5}));

  const tests::TemporaryFolder folder;
  fs::copy(file, folder.path / "a.gguf");
  EXPECT_EQ(find_gguf(folder.path.string()), (folder.path / "a.gguf").string());
  fs::copy(file, folder.path / "b.gguf");
  EXPECT_EQ(find_gguf(folder.path.string()), "") << "which of them?";
  const std::string types = (goldens().parent_path() / "gguf/types.gguf").string();
  EXPECT_TRUE(error_of([&] { (void)load_model(types); }).starts_with(types + ": "));
}

TEST(SentenceEncoders, TakeTheVectorThatTheirFolderNames) {
  const Changed folder("bert-encoder", {});
  const auto pool = [&] { return load_model(folder.path().string())->model.config().pool; };
  EXPECT_EQ(pool(), Pool::mean);
  fs::create_directory(folder.path() / "1_Pooling");
  const std::string path = (folder.path() / "1_Pooling/config.json").string();
  write_text(path, "{\"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": false}");
  EXPECT_EQ(pool(), Pool::first);
  write_text(path, "{\"pooling_mode_max_tokens\": true}");
  const std::string begin = "1_Pooling/config.json: ", known = begin + "pooling_mode: expected mean, cls or lasttoken, got ";
  EXPECT_EQ(folder.error(), known + "[\"max\"]");
  // Vectors of several ways stand behind each other there.
  write_text(path, "{\"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": true}");
  EXPECT_EQ(folder.error(), known + "[\"cls\",\"mean\"]");
  write_text(path, "[5]");
  EXPECT_EQ(folder.error(), begin + "expected an object");
  // As its sixth version writes it, which looks at switches no more.
  write_text(path, "{\"pooling_mode\": \"cls\", \"pooling_mode_mean_tokens\": true}");
  EXPECT_EQ(pool(), Pool::first);
  write_text(path, "{\"pooling_mode\": [\"mean\", \"max\"]}");
  EXPECT_EQ(folder.error(), known + "[\"mean\",\"max\"]");
  write_text(path, "{\"pooling_mode\": [\"lasttoken\"]}");
  EXPECT_EQ(pool(), Pool::last);
  const std::string modules = (folder.path() / "modules.json").string();
  write_text(modules, R"([{"type": "sentence_transformers.models.Transformer"}, {"type": "a.b.normalize.Normalize"}])");
  EXPECT_EQ(pool(), Pool::last);
  write_text(modules, R"([{"type": "sentence_transformers.models.Dense"}])");
  EXPECT_EQ(folder.error(),
            "modules.json: expected Transformer, Pooling and Normalize, which is all that is supported, got Dense");
}

TEST(SentenceEncoders, MayStandInALargerModel) {
  const Changed folder("bert-encoder", {{"architectures", "[\"BertForMaskedLM\"]"}});
  const std::string path = (folder.path() / "model.safetensors").string();
  const Tensors plain = read_safetensors(path);
  Tensors whole;
  for (const auto& [name, tensor] : plain) whole.emplace("bert." + name, tensor.clone());
  Tensor bias(Type::f32, {3});
  std::fill_n(bias.data<float>(), 3, 0.0f);
  whole.emplace("cls.predictions.bias", std::move(bias));
  write_safetensors(path, whole);
  fs::create_directory(folder.path() / "1_Pooling");
  write_text((folder.path() / "1_Pooling/config.json").string(), "{\"pooling_mode_mean_tokens\": true}");
  const auto model = load_model(folder.path().string());
  EXPECT_EQ(model->parameters.fingerprint(), load_model((goldens() / "bert-encoder").string())->parameters.fingerprint());
  const tests::TemporaryFolder to;
  save_model(to.path.string(), *model);
  EXPECT_EQ(load_model(to.path.string())->parameters.fingerprint(), model->parameters.fingerprint());
}

TEST(SentenceEncoders, HaveNoHeadWhateverTheirConfigSays) {
  const Changed folder("mpnet-encoder", {{"architectures", "[\"MPNetForMaskedLM\"]"}});
  EXPECT_TRUE(folder.error().starts_with("model.safetensors: missing weights: ")) << folder.error();
  fs::create_directory(folder.path() / "1_Pooling");
  write_text((folder.path() / "1_Pooling/config.json").string(), "{\"pooling_mode_mean_tokens\": true}");
  EXPECT_EQ(load_model(folder.path().string())->model.config().kind, ModelKind::embedding);
}

TEST(Architectures, AreInTheOrderOfTheAlphabet) {
  EXPECT_TRUE(std::ranges::is_sorted(architectures(), {}, [](const Architecture* one) { return one->name; }));
}

}  // namespace
}  // namespace isomer
