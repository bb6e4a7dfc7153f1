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
#include "isomer/models/logits.h"
#include "isomer/models/model_folder.h"
#include "isomer/models/pretrained.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

namespace fs = std::filesystem;
using tests::error_of;
constexpr double kOutputs = 1e-4, kGradients = 1e-3;

fs::path goldens() { return fs::path(ISOMER_SOURCE_DIR) / "tests/goldens/foreign"; }

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(goldens())) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

/// The largest difference over the largest number wanted, which is at least `least`.
double distance(const Tensor& got, const Tensor& want, double least = 1e-30) {
  if (got.shape() != want.shape()) return std::numeric_limits<double>::infinity();
  double worst = 0, largest = least;
  for (Index i = 0; i < want.size(); ++i) {
    worst = std::max(worst, std::abs(double(got.data<float>()[i]) - double(want.data<float>()[i])));
    largest = std::max(largest, std::abs(double(want.data<float>()[i])));
  }
  return worst / largest;
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

/// The folder of a golden with other texts in its config.
class Changed {
 public:
  Changed(const std::string& name, const std::vector<std::pair<std::string, std::string>>& changes) {
    fs::copy(goldens() / name, folder_.path, fs::copy_options::overwrite_existing | fs::copy_options::recursive);
    const std::string path = (folder_.path / "config.json").string();
    Json config = Json::parse(read_text(path), path);
    for (const auto& [key, value] : changes) config.set(key, Json::parse(value, key));
    write_text(path, config.dump(1));
  }
  [[nodiscard]] std::string error() const {
    std::string text = error_of([&] { (void)load_model(folder_.path.string()); });
    const std::string place = folder_.path.string() + "/";
    if (const std::size_t at = text.find(place); at != std::string::npos) text.erase(at, place.size());
    return text;
  }
  [[nodiscard]] const fs::path& path() const { return folder_.path; }

 private:
  tests::TemporaryFolder folder_;
};

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

TEST(ForeignErrors, NameWhatIsNotSupported) {
  const auto error = [](const char* key, const char* value) { return Changed("llama", {{key, value}}).error(); };
  EXPECT_EQ(error("hidden_act", "\"relu\""), "config.json: hidden_act: expected silu, got relu");
  EXPECT_EQ(error("num_hidden_layers", "0"),
            "config.json: num_hidden_layers: expected a whole number from 1 to 2147483647, got 0");
  EXPECT_EQ(error("hidden_size", "\"wide\""),
            "config.json: hidden_size: expected a whole number from 1 to 2147483647, got \"wide\"");
  EXPECT_EQ(error("vocab_size", "1e300").substr(0, 25), "config.json: vocab_size: ");
  EXPECT_TRUE(error("model_type", "\"llamma\"").starts_with("config.json: model_type: expected one of "));
  EXPECT_EQ(error("rope_parameters", "{\"rope_type\": \"yarn\"}"),
            "config.json: rope_parameters: rope_type: expected default, linear or llama3, got yarn");
  EXPECT_EQ(error("is_causal", "false"), "config.json: is_causal: expected true, which is all that is supported, got false");
  EXPECT_EQ(error("is_causal", "true"), "no error");
  // What somebody adds to a newer file is what counts.
  EXPECT_EQ(error("rope_scaling", "{\"rope_type\": \"yarn\"}"),
            "config.json: rope_scaling: rope_type: expected default, linear or llama3, got yarn");
  EXPECT_EQ(error("rope_scaling", "{}"), "no error");
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

TEST(ForeignErrors, NameWhatModelsOfFlaDoNotHave) {
  const auto error = [](const char* name, const char* key, const char* value) { return Changed(name, {{key, value}}).error(); };
  const std::string only = ", which is all that is supported";
  EXPECT_EQ(error("fla-gla", "expand_k", "0.3"), "config.json: expand_k: expected a factor of 16 that gives a whole number");
  EXPECT_EQ(error("fla-gla", "expand_k", "1e300"), "config.json: expand_k: expected a factor of 16 that gives a whole number");
  EXPECT_EQ(error("fla-gla", "num_kv_heads", "1"), "config.json: num_kv_heads: expected as many as num_heads" + only);
  EXPECT_EQ(error("fla-gla", "use_output_gate", "false"), "config.json: use_output_gate: expected true" + only + ", got false");
  EXPECT_EQ(error("fla-retnet", "attn", R"({"layers": [1]})"),
            "config.json: attn: expected none" + only + ", got {\"layers\":[1]}");
  EXPECT_EQ(error("fla-hgrn2", "expand_ratio", "5"),
            "config.json: expand_ratio: expected a number that divides hidden_size, got 5");
  EXPECT_EQ(error("fla-kda", "num_v_heads", "4"), "config.json: num_v_heads: expected as many as num_heads" + only);
}

TEST(ForeignErrors, NameWhatHybridsDoNotHave) {
  const auto error = [](const char* name, const char* key, const char* value) { return Changed(name, {{key, value}}).error(); };
  EXPECT_EQ(error("xlstm", "eps", "1e-5"), "config.json: eps: expected 1e-6, which is all that is supported, got 1e-05");
  EXPECT_EQ(error("xlstm", "weight_mode", "\"double\""), "config.json: weight_mode: expected single or fused, got double");
  EXPECT_EQ(error("recurrent-gemma", "block_types", "[\"recurrent\", \"convolution\"]"),
            "config.json: block_types: expected recurrent or attention, got \"convolution\"");
  EXPECT_EQ(error("recurrent-gemma", "rope_parameters", "{\"partial_rotary_factor\": 2}"),
            "config.json: partial_rotary_factor: expected a number up to 1, got 2.0");
  EXPECT_EQ(error("qwen3-next", "num_experts", "512"),
            "config.json: num_experts: expected 0, mixtures of experts are not supported, got 512");
  EXPECT_EQ(error("qwen3-next", "layer_types", "[\"linear_attention\"]"),
            "config.json: layer_types: expected a list with a text for each layer");
  EXPECT_EQ(error("qwen3-5", "linear_num_value_heads", "3"),
            "config.json: linear_num_value_heads: expected a multiple of linear_num_key_heads, got 3");
  EXPECT_EQ(error("falcon-h1", "ssm_multipliers", "[1, 2]"), "config.json: ssm_multipliers: expected 5 numbers other than 0");
  EXPECT_EQ(error("falcon-h1", "key_multiplier", "0"), "config.json: key_multiplier: expected a number other than 0");
  EXPECT_EQ(error("falcon-h1", "time_step_limit", "[0.0, 1.0]"),
            "config.json: time_step_limit: expected none, which is all that is supported, got [0.0,1.0]");
  EXPECT_EQ(error("mamba2", "time_step_limit", "[0.001, 0.1]"),
            "config.json: time_step_limit: expected none, which is all that is supported, got [0.001,0.1]");
  EXPECT_EQ(error("falcon-h1", "mamba_conv_bias", "false"),
            "config.json: mamba_conv_bias: expected true, which is all that is supported, got false");
  EXPECT_EQ(error("olmo-hybrid", "attention_bias", "true"),
            "config.json: attention_bias: expected none, which is all that is supported, got true");
  EXPECT_EQ(error("kimi-linear", "mlp_layer_types", "[\"dense\", \"sparse\"]"),
            "config.json: mlp_layer_types: layer 1: mixtures of experts are not supported");
  EXPECT_EQ(error("kimi-linear", "q_lora_rank", "4"),
            "config.json: q_lora_rank: expected none, which is all that is supported, got 4");
}

TEST(ForeignErrors, NameWhatModelsOfSoundDoNotHave) {
  const auto error = [](const char* name, const char* key, const char* value) { return Changed(name, {{key, value}}).error(); };
  EXPECT_EQ(error("whisper", "architectures", "[\"WhisperForCausalLM\"]"),
            "config.json: architectures: expected WhisperModel, WhisperEncoder, WhisperForConditionalGeneration or "
            "WhisperForAudioClassification, got WhisperForCausalLM");
  EXPECT_EQ(error("whisper", "activation_function", "\"relu\""), "config.json: activation_function: expected gelu, got relu");
  EXPECT_EQ(error("whisper", "d_model", "15"), "config.json: fixed_positions: expected positions and an even width");
  EXPECT_EQ(error("whisper-classifier", "use_weighted_layer_sum", "true"),
            "config.json: use_weighted_layer_sum: expected none, which is all that is supported, got true");
  EXPECT_EQ(error("whisper-encoder", "num_mel_bins", "6"),
            "model.safetensors: of another shape: conv1.weight [16, 5, 3] for convolutions.0.weight [16, 18]");
}

TEST(ForeignErrors, NameWhatPerformersDoNotHave) {
  const auto error = [](const char* key, const char* value) { return Changed("performer", {{key, value}}).error(); };
  EXPECT_EQ(error("generalized_attention", "true"),
            "config.json: generalized_attention: expected none, which is all that is supported, got true");
  EXPECT_EQ(error("local_attn_heads", "4"), "config.json: local_attn_heads: expected fewer than heads, got 4");
  EXPECT_EQ(error("local_attn_heads", "-1"),
            "config.json: local_attn_heads: expected a whole number from 1 to 2147483647, got -1");
  EXPECT_EQ(error("dim_head", "5"), "config.json: dim_head: expected an even number, got 5");
  EXPECT_TRUE(error("nb_features", "8").starts_with("model.safetensors: of another shape: transformer.net.layers.0.0.fn."));
}

// Folders that mean harm: one line, and no memory taken for sizes that nothing stands behind.
TEST(ForeignErrors, NameSizesThatTheWeightsCannotHave) {
  const auto error = [](const char* name, const std::vector<std::pair<std::string, std::string>>& changes) {
    return Changed(name, changes).error();
  };
  EXPECT_EQ(error("llama", {{"num_hidden_layers", "2147483647"}}),
            "config.json: num_hidden_layers: expected a whole number from 1 to 4096, got 2147483647");
  EXPECT_EQ(error("llama", {{"hidden_size", "2147483647"}}),
            "config.json: model: expected a width from 1 to 1048576, got 2147483647");
  const std::string wide = error("gpt2", {{"n_embd", "1048576"}, {"n_layer", "4096"}});
  EXPECT_TRUE(wide.starts_with("config.json: expected weights of ")) << wide;
  EXPECT_TRUE(wide.ends_with(" numbers for these sizes, found 7152")) << wide;
  for (const auto& [name, key] : std::vector<std::pair<const char*, const char*>>{{"llama", "intermediate_size"},
                                                                                  {"llama", "vocab_size"},
                                                                                  {"llama", "num_attention_heads"},
                                                                                  {"mamba", "state_size"},
                                                                                  {"mamba2", "n_groups"},
                                                                                  {"fla-retnet", "num_heads"},
                                                                                  {"fla-rwkv7", "decay_low_rank_dim"},
                                                                                  {"gpt2", "n_positions"},
                                                                                  {"kimi-linear", "kv_lora_rank"},
                                                                                  {"bert-classifier", "max_position_embeddings"},
                                                                                  {"whisper", "num_mel_bins"},
                                                                                  {"whisper", "max_source_positions"},
                                                                                  {"whisper", "encoder_ffn_dim"},
                                                                                  {"whisper-classifier", "classifier_proj_size"},
                                                                                  {"performer", "heads"},
                                                                                  {"performer", "dim_head"},
                                                                                  {"performer", "nb_features"},
                                                                                  {"performer", "max_seq_len"},
                                                                                  {"tabpfn", "num_labels"}})
    for (const char* size : {"2147483647", "1048576"}) {
      const std::string said = error(name, {{key, size}});
      EXPECT_NE(said, "no error") << name << " " << key;
      EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    }
}

TEST(ForeignErrors, NameTextsThatNobodyCouldRead) {
  const Changed changed("llama", {});
  const std::string path = (changed.path() / "config.json").string();
  fs::resize_file(path, std::uintmax_t{1} << 30);
  EXPECT_EQ(changed.error(), "cannot read config.json: expected at most 16777216 bytes, got more");
  fs::copy_file(goldens() / "llama/config.json", path, fs::copy_options::overwrite_existing);
  const std::string tokenizer = (changed.path() / "tokenizer.json").string();
  write_text(tokenizer, "");
  fs::resize_file(tokenizer, std::uintmax_t{1} << 30);
  EXPECT_EQ(changed.error(), "cannot read tokenizer.json: expected at most 268435456 bytes, got more");
  fs::remove(tokenizer);
  // A link to itself is no file.
  fs::create_symlink("tokenizer_config.json", changed.path() / "tokenizer_config.json");
  EXPECT_EQ(changed.error(), "no error");
}

TEST(ForeignErrors, ListWeightsThatAreNotThere) {
  EXPECT_EQ(Changed("llama", {{"num_hidden_layers", "1"}}).error(),
            "model.safetensors: unknown weights: model.layers.1.input_layernorm.weight, model.layers.1.mlp.down_proj.weight, "
            "model.layers.1.mlp.gate_proj.weight, model.layers.1.mlp.up_proj.weight, "
            "model.layers.1.post_attention_layernorm.weight, model.layers.1.self_attn.k_proj.weight, "
            "model.layers.1.self_attn.o_proj.weight, model.layers.1.self_attn.q_proj.weight and 1 more");
  EXPECT_TRUE(Changed("llama", {{"intermediate_size", "25"}})
                  .error()
                  .starts_with("model.safetensors: of another shape: model.layers.0.mlp.down_proj.weight [16, 24] for "
                               "layers.0.mlp.down.weight [16, 25], "));
  const Changed cut("llama", {});
  fs::resize_file(cut.path() / "model.safetensors", 1000);
  EXPECT_NE(cut.error(), "");
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
  whole.emplace("cls.predictions.bias", Tensor(Type::f32, {3}));
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
