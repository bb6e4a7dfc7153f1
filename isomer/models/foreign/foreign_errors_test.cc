// Folders of other libraries that ask for what is not here, or mean harm: one line says what.
#include <gtest/gtest.h>

#include <filesystem>

#include "isomer/models/foreign/testing.h"

namespace isomer {
namespace {
namespace fs = std::filesystem;
using testing::Changed;
using testing::goldens;

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

}  // namespace
}  // namespace isomer
