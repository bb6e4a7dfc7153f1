#include "isomer/models/config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "isomer/models/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
using testing::small_config;
using tests::error_of;

ModelConfig full() {
  ModelConfig config = small_config(ModelKind::language);
  config.layers = testing::hybrid_layers();
  config.mlp = MlpKind::gelu;
  config.mlp_factor = 2.5;
  config.norm = Norm::layer;
  config.tied = false;
  config.dropout = 0.1;
  config.logit_cap = 30;
  config.classes = 7;
  config.positions = true;
  config.deviation = 0.1;
  config.qk_identity = 0.5;
  return config;
}

TEST(ModelConfig, IsReadBackAsItWasWritten) {
  for (const ModelConfig& config : {full(), small_config(ModelKind::vision), small_config(ModelKind::regression)}) {
    const std::string json = to_json(config);
    const ModelConfig read = model_config(json, "config.json");
    EXPECT_EQ(to_json(read), json);
    EXPECT_EQ(read.layers.size(), config.layers.size());
    EXPECT_EQ(read.layers[1].options, config.layers[1].options);
    EXPECT_EQ(read.kind, config.kind);
    EXPECT_EQ(read.dropout, config.dropout);
    EXPECT_EQ(read.features, config.features);
  }
}

/// The error of a written config in which one text stands in place of another.
std::string error_with(const std::string& from, const std::string& to) {
  std::string json = to_json(full());
  const std::size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  json.replace(at, from.size(), to);
  return error_of([&] { (void)model_config(json, "a/config.json"); });
}

TEST(ModelConfig, HasOptionsOfPreTrainedModelsWhereTheyAreNotAtTheirDefaults) {
  ModelConfig config = small_config(ModelKind::encoder);
  const std::string plain = to_json(config);
  for (const char* key : {"mlp_hidden", "norm_eps", "norm_place", "pool", "head_bias"})
    EXPECT_EQ(plain.find(key), std::string::npos);
  config.mlp_hidden = 20;
  config.mlp_bias = config.front_norm = config.pooler = true;
  config.last_norm = false;
  config.norm_eps = 1e-12;
  config.norm_place = NormPlace::after;
  config.types = 2;
  config.embedding_scale = 4;
  config.pool = Pool::first;
  const ModelConfig read = model_config(to_json(config), "config.json");
  EXPECT_EQ(to_json(read), to_json(config));
  EXPECT_EQ(read.norm_place, NormPlace::after);
  EXPECT_EQ(read.pool, Pool::first);
  EXPECT_EQ(read.norm_eps, 1e-12);
  EXPECT_FALSE(read.last_norm);
}

TEST(ModelConfig, OfFramesHasConvolutionsAndFixedPositions) {
  const ModelConfig frames = testing::frames_config();
  EXPECT_EQ(to_json(model_config(to_json(frames), "config.json")), to_json(frames));
  EXPECT_EQ(model_config(to_json(frames), "config.json").convolutions, (std::vector<Index>{1, 2}));
  EXPECT_EQ(tokens_of(frames, 8), 4);
  EXPECT_EQ(tokens_of(frames, 7), 4);
  const auto error = [&](const auto& change) {
    ModelConfig config = frames;
    change(config);
    return error_of([&] { check(config); });
  };
  EXPECT_EQ(error([](ModelConfig& c) { c.convolutions = {0}; }), "model: expected a stride from 1 to 16, got 0");
  EXPECT_EQ(error([](ModelConfig& c) { c.convolutions.assign(17, 1); }),
            "model: expected a number of convolutions from 0 to 16, got 17");
  EXPECT_EQ(error([](ModelConfig& c) { c.features = 0, c.vocabulary = 9; }),
            "convolutions: expected vectors, and not those of a table");
  EXPECT_EQ(error([](ModelConfig& c) { c.positions = false; }), "fixed_positions: expected positions and an even width");
  EXPECT_EQ(error([](ModelConfig& c) { c.head_hidden = 0; }), "head_activation: expected head_hidden, got 0");
  std::string json = to_json(frames);
  json.replace(json.find("\"convolutions\": ["), 17, "\"convolutions\": [\"1\",");
  EXPECT_EQ(error_of([&] { (void)model_config(json, "config.json"); }),
            "config.json: convolutions: expected a whole number, got \"1\"");
}

TEST(ModelConfig, SaysWhatIsWrongWithAFile) {
  EXPECT_EQ(error_with("\"version\": 1", "\"version\": 2"),
            "a/config.json: version: expected at most 1, got 2: a newer isomer wrote it");
  EXPECT_EQ(error_with("\"width\"", "\"widht\""), "a/config.json: config: expected a key width, found none");
  EXPECT_EQ(error_with("\"tied\": false", "\"tied\": false, \"droput\": 1"),
            "a/config.json: config: unknown key droput, did you mean dropout?");
  EXPECT_EQ(error_with("\"width\": 8", "\"width\": \"8\""), "a/config.json: width: expected a whole number, got \"8\"");
  EXPECT_EQ(error_with("\"width\": 8", "\"width\": 18446744073709551615"),
            "a/config.json: width: expected a whole number, got 18446744073709551615");
  EXPECT_EQ(error_with("\"width\": 8", "\"width\": -8"), "a/config.json: model: expected a width from 1 to 1048576, got -8");
  EXPECT_EQ(error_with("\"kind\": \"language\"", "\"kind\": \"langauge\""),
            "a/config.json: model kind: expected language, classifier, encoder, vision, regression, autoencoder, masked, "
            "embedding or table, got langauge, did you mean language?");
  EXPECT_EQ(error_with("\"preset\": \"gla\"", "\"preset\": \"glas\"").find("a/config.json: "), 0);
  EXPECT_EQ(error_with("{", "{\"labels\": [1],"), "a/config.json: labels: expected a list of texts, got [1]");
  EXPECT_EQ(error_with("{", "{\"labels\": 1,"), "a/config.json: labels: expected a list of texts, got 1");
  EXPECT_EQ(
      error_with("{", "{]"),
      "a/config.json: expected JSON, got a parse error at line 1, column 2: syntax error while parsing object key - unexpected "
      "']'; expected string literal");
  const std::string other = error_with("\"window\": \"4\"", "\"window\": \"5\"");
  EXPECT_EQ(other.find("a/config.json: layers: layer 1 is sliding-window-"), 0) << other;
  EXPECT_NE(other.find(" where it was saved"), std::string::npos) << other;
}

TEST(ModelConfig, IsRefusedWhenNoModelCanBeMadeOfIt) {
  const auto error = [](ModelKind kind, const auto& change) {
    ModelConfig config = small_config(kind);
    change(config);
    return error_of([&] { check(config); });
  };
  using enum ModelKind;
  EXPECT_EQ(error(language, [](ModelConfig&) {}), "no error");
  EXPECT_EQ(error(language, [](ModelConfig& c) { c.vocabulary = 0; }),
            "language: expected either a vocabulary or features, got 0 and 0");
  EXPECT_EQ(error(language, [](ModelConfig& c) { c.classes = 12; }),
            "language: a tied output has the 11 tokens as classes, got 12; tied=false has its own");
  EXPECT_EQ(error(classifier, [](ModelConfig& c) { c.classes = 0; }), "classifier: expected classes, got 0");
  EXPECT_EQ(error(regression, [](ModelConfig& c) { c.outputs = 0; }), "regression: expected outputs, got 0");
  EXPECT_EQ(error(vision, [](ModelConfig& c) { c.length = 0; }), "vision: expected the length of a sequence, got 0");
  EXPECT_EQ(error(language,
                  [](ModelConfig& c) {
                    c.positions = true;
                    c.length = 0;
                  }),
            "language: expected the length of a sequence, got 0");
  EXPECT_EQ(error(language, [](ModelConfig& c) { c.deviation = -1; }), "deviation: expected a number >= 0, got -1");
  EXPECT_EQ(error(language, [](ModelConfig& c) { c.qk_identity = -1; }), "qk_identity: expected a number >= 0, got -1");
  EXPECT_EQ(error(language, [](ModelConfig& c) { c.layers.clear(); }),
            "model: expected a number of layers from 1 to 4096, got 0");
  EXPECT_EQ(error(classifier, [](ModelConfig& c) { c.labels = {"a", "b"}; }), "labels: expected 5 names, got 2");
  EXPECT_EQ(error(language, [](ModelConfig& c) { c.dropout = 1; }), "dropout: expected a number from 0 to below 1, got 1");
  ModelConfig other = small_config(language);
  other.norm = Norm::l2;
  EXPECT_EQ(error_of([&] { (void)to_json(other); }), "norm: expected rms or layer, got l2");
}

TEST(ModelConfig, OfATableHasVectorsClassesAndAHeadOfItsOwn) {
  const ModelConfig table{.kind = ModelKind::table,
                          .width = 8,
                          .layers = {{"softmax"}},
                          .tied = false,
                          .head_hidden = 4,
                          .classes = 3,
                          .features = 5};
  EXPECT_EQ(error_of([&] { check(table); }), "no error");
  EXPECT_EQ(to_json(model_config(to_json(table), "config.json")), to_json(table));
  const auto error = [&](const auto& change) {
    ModelConfig config = table;
    change(config);
    return error_of([&] { check(config); });
  };
  EXPECT_EQ(error([](ModelConfig& c) { c.tied = true; }), "table: expected tied=false, for rows have no embedding");
  EXPECT_EQ(error([](ModelConfig& c) { c.features = 0, c.vocabulary = 4; }), "table: expected vectors, got tokens");
  EXPECT_EQ(error([](ModelConfig& c) { c.classes = 0; }), "table: expected classes, got 0");
  EXPECT_EQ(error([](ModelConfig& c) { c.class_token = true; }), "table: expected no class_token");
  EXPECT_EQ(error([](ModelConfig& c) { c.kind = ModelKind::embedding; }),
            "head_hidden: expected a head of its own that has labels and no head_transform");
}

TEST(ModelConfig, EncodersSeeTheWholeSequenceWhereTheirMixersCan) {
  ModelConfig config = small_config(ModelKind::encoder);
  config.layers.push_back({"linear-elu", {{"heads", "2"}, {"causal", "true"}}});
  config.layers.push_back({"softmax", {{"heads", "2"}, {"decay", "true"}}});
  EXPECT_FALSE(graph::causal(layer_graph(config, 0)));
  EXPECT_TRUE(graph::causal(layer_graph(config, 1))) << "gla has one direction";
  EXPECT_TRUE(graph::causal(layer_graph(config, 2))) << "asked for";
  EXPECT_TRUE(graph::causal(layer_graph(config, 3))) << "decay needs it";
  config.kind = ModelKind::classifier;
  EXPECT_TRUE(graph::causal(layer_graph(config, 0)));
}

TEST(ModelConfig, OutputProjectionsStartSmallerInDeepModels) {
  const ModelConfig config = small_config(ModelKind::language);
  const graph::Graph graph = layer_graph(config, 0);
  const auto& output = std::get<graph::Linear>(graph.nodes.back().work);
  EXPECT_DOUBLE_EQ(output.weight.b, 0.02 / std::sqrt(4.0));
}

TEST(ModelConfig, SaysHowWeightsStartUnlessTheirMixerDoes) {
  ModelConfig config = small_config(ModelKind::language);
  config.layers = {{"softmax", {{"heads", "2"}}}, {"mlstm", {{"heads", "2"}, {"block", "pre-up"}}}};
  const auto weights = [&](Index layer) {
    std::vector<double> all;
    for (const graph::Node& node : layer_graph(config, layer).nodes)
      if (const auto* linear = std::get_if<graph::Linear>(&node.work)) all.push_back(linear->weight.b);
    return all;
  };
  const std::vector<double> own = weights(1);
  config.deviation = 0.1;
  EXPECT_EQ(weights(0), (std::vector<double>{0.1, 0.1, 0.1, 0.1 / std::sqrt(4.0)}));
  EXPECT_EQ(weights(1), own);
  EXPECT_EQ(mlp_options(config).deviation, 0.1);
}

TEST(ModelConfig, StartsQueriesAndKeysNearTheUnitMatrix) {
  ModelConfig config = small_config(ModelKind::language);
  config.layers = {{"softmax", {{"heads", "1"}}}};
  config.deviation = 0.1;
  config.qk_identity = 0.5;
  using Kind = graph::Init::Kind;
  std::vector<Kind> kinds;
  for (const graph::Node& node : layer_graph(config, 0).nodes)
    if (const auto* linear = std::get_if<graph::Linear>(&node.work)) {
      kinds.push_back(linear->weight.kind);
      if (kinds.back() == Kind::near_identity) {
        EXPECT_EQ(linear->weight.a, 0.5);
        EXPECT_EQ(linear->weight.b, 0.1);
      }
    }
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::near_identity, Kind::near_identity, Kind::normal, Kind::normal}));
}

}  // namespace
}  // namespace isomer
