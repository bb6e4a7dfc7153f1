#include "isomer/models/pretrained.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "isomer/base/error.h"
#include "isomer/io/json.h"
#include "isomer/io/text.h"
#include "isomer/models/executor.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
namespace fs = std::filesystem;

std::string golden(const std::string& name) { return (fs::path(ISOMER_SOURCE_DIR) / "tests/goldens/foreign" / name).string(); }

/// A classifier of three on the weights of a folder, as training leaves it: its head is like no file's.
std::unique_ptr<LoadedModel> classifier_of(const std::string& name) {
  const ModelConfig config = describe_model(golden(name), Classes{.count = 3, .labels = {"a", "b", "c"}});
  Tensors weights = read_weights(golden(name));
  Parameters<float> parameters;
  const Model<float> model(config, parameters);
  Tensors own = parameters.tensors();
  for (auto& [weight, tensor] : own) {
    const auto there = weights.find(weight);
    if (there != weights.end() && there->second.shape() == tensor.shape())
      tensor = there->second.clone();
    else
      for (Index i = 0; i < tensor.size(); ++i) tensor.data<float>()[i] = 0.01F * float(i % 7) - 0.02F;
  }
  return std::make_unique<LoadedModel>(config, own, nullptr);
}

std::vector<float> logits_of(const LoadedModel& loaded) {
  Context context(1);
  Tape<float> tape(context, Record::no);
  const std::vector<std::int64_t> tokens{2, 7, 9, 11, 3};
  const Var<float> logits = loaded.model.logits(tape, {.B = 1, .T = 5, .tokens = tokens}).logits;
  return {logits.value.data, logits.value.data + logits.value.size()};
}

TEST(Pretrained, DescribesAFolderWithoutItsWeights) {
  for (const char* name : {"llama", "bert", "bert-encoder", "gemma3", "vit", "mamba2", "whisper"})
    EXPECT_EQ(to_json(describe_model(golden(name))), to_json(load_model(golden(name))->model.config())) << name;
  const std::string gguf = (fs::path(ISOMER_SOURCE_DIR) / "tests/goldens/gguf/llama.gguf").string();
  EXPECT_EQ(to_json(describe_model(gguf)), to_json(load_model(gguf)->model.config()));
  EXPECT_TRUE(is_bare_model(gguf) && is_bare_model(golden("bert")));
  EXPECT_FALSE(is_bare_model(golden("")));
  EXPECT_FALSE(read_tokenizer(gguf).empty());
  EXPECT_TRUE(read_tokenizer(golden("llama")).empty());
}

TEST(Pretrained, GivesEveryKindAHeadForClasses) {
  const Classes classes{.count = 3, .labels = {"a", "b", "c"}};
  for (const char* name : {"bert", "bert-encoder", "bert-classifier", "roberta"}) {
    const ModelConfig config = describe_model(golden(name), classes);
    EXPECT_EQ(config.kind, ModelKind::encoder) << name;
    EXPECT_TRUE(config.pooler && config.pool == Pool::first && !config.head_transform) << name;
    EXPECT_EQ(config.classes, 3) << name;
    EXPECT_EQ(config.labels, classes.labels) << name;
  }
  const ModelConfig llama = describe_model(golden("llama"), classes);
  EXPECT_EQ(llama.kind, ModelKind::classifier);
  EXPECT_EQ(llama.pool, Pool::last);
  EXPECT_EQ(describe_model(golden("vit"), classes).kind, ModelKind::vision);
  EXPECT_EQ(describe_model(golden("dinov2"), classes).kind, ModelKind::vision);
  EXPECT_EQ(describe_model(golden("whisper"), classes).head_hidden, 256);
  EXPECT_EQ(describe_model(golden("whisper-encoder"), classes).kind, ModelKind::vision);
  EXPECT_EQ(logits_of(*classifier_of("llama")).size(), 3U);
}

TEST(Pretrained, KeepsWhatAFileHasForAClassifier) {
  // BertModel has its pooler in the file, though an encoder of sentences does not read it.
  const Tensors weights = read_weights(golden("bert-encoder"));
  EXPECT_TRUE(weights.contains("pooler.weight") && weights.contains("pooler.bias"));
  EXPECT_FALSE(load_model(golden("bert-encoder"))->parameters.tensors().contains("pooler.weight"));
}

TEST(Pretrained, IsWrittenAsTheLibraryHasIt) {
  for (const char* name : {"bert", "bert-encoder", "roberta"}) {
    const tests::TemporaryFolder to;
    const auto own = classifier_of(name);
    ASSERT_EQ(export_model(to.path.string(), *own, golden(name)), Exported::hugging_face) << name;
    const Json config = Json::parse(read_text((to.path / "config.json").string()), name);
    EXPECT_TRUE(config.at("architectures").items()[0].text().ends_with("ForSequenceClassification")) << name;
    EXPECT_EQ(config.at("id2label").at("2").text(), "c");
    const auto again = load_model(to.path.string());
    EXPECT_EQ(again->model.config().labels, own->model.config().labels);
    EXPECT_EQ(logits_of(*again), logits_of(*own)) << name;
  }
  const tests::TemporaryFolder sounds;
  ASSERT_EQ(export_model(sounds.path.string(), *classifier_of("whisper"), golden("whisper")), Exported::hugging_face);
  EXPECT_EQ(load_model(sounds.path.string())->model.config().labels, (std::vector<std::string>{"a", "b", "c"}));
  const tests::TemporaryFolder to;
  const auto llama = load_model(golden("llama"));
  EXPECT_EQ(export_model(to.path.string(), *llama, golden("llama")), Exported::hugging_face);
  EXPECT_EQ(logits_of(*load_model(to.path.string())), logits_of(*llama));
}

TEST(Pretrained, IsOursWhereNoLibraryHasIt) {
  const tests::TemporaryFolder to;
  const auto own = classifier_of("llama");
  EXPECT_EQ(export_model(to.path.string(), *own, golden("llama")), Exported::ours);
  EXPECT_EQ(logits_of(*load_model(to.path.string())), logits_of(*own));
  ModelConfig config = describe_model(golden("bert"));
  config.layers[0] = {.preset = "luna", .options = {{"heads", "2"}, {"causal", "false"}, {"bias", "true"}, {"position", "none"}}};
  Parameters<float> parameters;
  const Model<float> model(config, parameters);
  Tensors weights = parameters.tensors();
  for (auto& [name, tensor] : weights) std::fill_n(tensor.data<float>(), tensor.size(), 0.1F);
  EXPECT_EQ(export_model(to.path.string(), LoadedModel(config, weights, nullptr), golden("bert")), Exported::ours);
}

TEST(Pretrained, RefusesWhatHasNoVectorForASequence) {
  ModelConfig config = describe_model(golden("llama"));
  config.kind = ModelKind::autoencoder;
  const tests::TemporaryFolder to;
  write_text((to.path / "config.json").string(), to_json(config));
  EXPECT_NE(
      tests::error_of([&] { (void)describe_model(to.path.string(), Classes{.count = 2}); }).find("classes can be read from"),
      std::string::npos);
}

}  // namespace
}  // namespace isomer
