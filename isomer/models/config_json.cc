#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/io/json.h"
#include "isomer/mixers/fingerprint.h"
#include "isomer/models/config.h"

namespace isomer {

namespace {
constexpr int kConfigVersion = 1;
constexpr std::string_view kNorms[] = {"rms", "layer"};

/// Reads the keys of one object; finish() refuses those that nobody read.
class ConfigReader {
 public:
  ConfigReader(const Json& json, const char* what) : json_(json), what_(what) {
    require(json.is_object(), what, "expected an object, got ", json.dump());
  }
  const Json& at(const char* key) {
    known_.emplace_back(key);
    const Json* found = json_.find(key);
    require(found != nullptr, what_, "expected a key ", key, ", found none");
    return *found;
  }
  /// A list of texts that may be missing.
  std::vector<std::string> texts(const char* key) {
    if (json_.find(key) == nullptr) return {};
    const Json& value = at(key);
    require(value.is_array() && std::ranges::all_of(value.items(), &Json::is_string), key, "expected a list of texts, got ",
            value.dump());
    std::vector<std::string> all;
    for (const Json& item : value.items()) all.push_back(item.text());
    return all;
  }
  Index index(const char* key) { return index_of(at(key), key); }
  std::vector<Index> indices(const char* key) {
    const Json& value = at(key);
    require(value.is_array(), key, "expected a list of whole numbers, got ", value.dump());
    std::vector<Index> all;
    for (const Json& item : value.items()) all.push_back(index_of(item, key));
    return all;
  }
  double number(const char* key) {
    const Json& value = at(key);
    require(value.is_number(), key, "expected a number, got ", value.dump());
    return value.number();
  }
  bool flag(const char* key) {
    const Json& value = at(key);
    require(value.is_boolean(), key, "expected true or false, got ", value.dump());
    return value.boolean();
  }
  std::string text(const char* key) {
    const Json& value = at(key);
    require(value.is_string(), key, "expected a text, got ", value.dump());
    return value.text();
  }
  /// Whether the key is there: what came later than the first files may be missing, and then has its default.
  [[nodiscard]] bool has(const char* key) const { return json_.find(key) != nullptr; }
  void finish() const {
    for (const auto& [key, value] : json_.members())
      require(std::ranges::find(known_, key) != known_.end(), what_, "unknown key ", key, did_you_mean(key, known_));
  }

 private:
  static Index index_of(const Json& value, const char* key) {
    require(value.is_integer() && std::abs(value.number()) < 0x1p62, key, "expected a whole number, got ", value.dump());
    return value.integer();
  }

  const Json& json_;
  const char* what_;
  std::vector<std::string> known_;
};

/// Keys that files have only where they are not at their defaults: take(key, value, what reads the name of an enumeration).
template <class Config, class F>
void each_later(Config& config, F take) {
  const auto none = [](const std::string&) { return 0; };
  take("mlp_hidden", config.mlp_hidden, none);
  take("mlp_bias", config.mlp_bias, none);
  take("norm_eps", config.norm_eps, none);
  take("norm_place", config.norm_place, norm_place_named);
  take("layer_scale", config.layer_scale, none);
  take("types", config.types, none);
  take("front_norm", config.front_norm, none);
  take("last_norm", config.last_norm, none);
  take("class_token", config.class_token, none);
  take("embedding_scale", config.embedding_scale, none);
  take("pool", config.pool, pool_named);
  take("pooler", config.pooler, none);
  take("head_transform", config.head_transform, none);
  take("head_bias", config.head_bias, none);
  take("head_hidden", config.head_hidden, none);
  take("head_activation", config.head_activation, head_activation_named);
  take("fixed_positions", config.fixed_positions, none);
  take("convolutions", config.convolutions, none);
}

template <class T>
Json json_of(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return name_of(value);
  else
    return value;
}

struct SavedLayer {
  LayerConfig config;
  std::string fingerprint;
};

SavedLayer read_layer(const Json& json) {
  ConfigReader read(json, "layers");
  SavedLayer layer{{read.text("preset")}, read.text("fingerprint")};
  const Json& options = read.at("options");
  require(options.is_object(), "options", "expected an object, got ", options.dump());
  for (const auto& [key, value] : options.members()) {
    require(value.is_string(), "options", "expected ", key, " as text, got ", value.dump());
    layer.config.options[key] = value.text();
  }
  if (read.has("norm_place")) layer.config.norm_place = norm_place_named(read.text("norm_place"));
  read.finish();
  return layer;
}

ModelConfig read_config(const Json& json) {
  ConfigReader read(json, "config");
  const Index version = read.index("version");
  require(version <= kConfigVersion, "version", "expected at most ", kConfigVersion, ", got ", version,
          ": a newer isomer wrote it");
  require(version == kConfigVersion, "version", "expected ", kConfigVersion, ", got ", version);
  ModelConfig config{.kind = model_kind_named(read.text("kind")),
                     .width = read.index("width"),
                     .mlp = mlp_named(read.text("mlp")),
                     .mlp_factor = read.number("mlp_factor"),
                     .norm = Norm(position_of("norm", read.text("norm"), kNorms)),
                     .tied = read.flag("tied"),
                     .dropout = read.number("dropout"),
                     .logit_cap = read.number("logit_cap"),
                     .positions = read.flag("positions"),
                     .deviation = read.number("deviation"),
                     .qk_identity = read.number("qk_identity"),
                     .vocabulary = read.index("vocabulary"),
                     .classes = read.index("classes"),
                     .features = read.index("features"),
                     .outputs = read.index("outputs"),
                     .length = read.index("length"),
                     .labels = read.texts("labels")};
  each_later(config, [&](const char* key, auto& value, auto&& named) {
    if (!read.has(key)) return;
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, bool>)
      value = read.flag(key);
    else if constexpr (std::is_enum_v<Value>)
      value = named(read.text(key));
    else if constexpr (std::is_same_v<Value, Index>)
      value = read.index(key);
    else if constexpr (std::is_same_v<Value, std::vector<Index>>)
      value = read.indices(key);
    else
      value = read.number(key);
  });
  const Json& layers = read.at("layers");
  require(layers.is_array(), "layers", "expected a list, got ", layers.dump());
  read.finish();
  std::vector<std::string> fingerprints;
  for (const Json& layer : layers.items()) {
    SavedLayer saved = read_layer(layer);
    config.layers.push_back(std::move(saved.config));
    fingerprints.push_back(std::move(saved.fingerprint));
  }
  check(config);
  for (std::size_t i = 0; i < fingerprints.size(); ++i) {
    const std::string here = graph::fingerprint(layer_graph(config, Index(i)));
    require(fingerprints[i] == here, "layers", "layer ", i, " is ", here, " here, and was ", fingerprints[i],
            " where it was saved");
  }
  return config;
}
}  // namespace

std::string to_json(const ModelConfig& config) {
  check(config);
  Json layers = Json::array();
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    Json options = Json::object();
    for (const auto& [key, value] : config.layers[i].options) options.set(key, value);
    Json layer = Json::object({{"preset", config.layers[i].preset},
                               {"options", std::move(options)},
                               {"fingerprint", graph::fingerprint(layer_graph(config, Index(i)))}});
    if (const auto place = config.layers[i].norm_place) layer.set("norm_place", name_of(*place));
    layers.push(std::move(layer));
  }
  Json json = Json::object({{"version", kConfigVersion},
                            {"kind", name_of(config.kind)},
                            {"width", config.width},
                            {"layers", std::move(layers)},
                            {"mlp", name_of(config.mlp)},
                            {"mlp_factor", config.mlp_factor},
                            {"norm", kNorms[std::size_t(config.norm)]},
                            {"tied", config.tied},
                            {"dropout", config.dropout},
                            {"logit_cap", config.logit_cap},
                            {"positions", config.positions},
                            {"deviation", config.deviation},
                            {"qk_identity", config.qk_identity},
                            {"vocabulary", config.vocabulary},
                            {"classes", config.classes},
                            {"features", config.features},
                            {"outputs", config.outputs},
                            {"length", config.length}});
  const ModelConfig plain;
  std::vector<Json> defaults;
  each_later(plain, [&](const char*, const auto& value, auto&&) { defaults.push_back(json_of(value)); });
  std::size_t next = 0;
  each_later(config, [&](const char* key, const auto& value, auto&&) {
    if (const Json now = json_of(value); now != defaults[next++]) json.set(key, now);
  });
  if (!config.labels.empty()) json.set("labels", config.labels);
  return json.dump(2) + "\n";
}

ModelConfig model_config(std::string_view json, const std::string& name) {
  const Json parsed = Json::parse(json, name);
  try {
    return read_config(parsed);
  } catch (const Error& problem) {
    throw Error(name + ": " + problem.what());
  }
}

}  // namespace isomer
