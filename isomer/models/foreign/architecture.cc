#include "isomer/models/foreign/architecture.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "isomer/base/error.h"
#include "isomer/base/settings.h"
#include "isomer/models/cost.h"

namespace isomer {

namespace {
constexpr Index kLargest = (Index{1} << 31) - 1;

/// In errors, which are one line whatever a file holds.
std::string shown(const Json& value) {
  constexpr std::size_t kMost = 80;
  const std::string text = value.dump();
  return text.size() <= kMost ? text : text.substr(0, kMost) + "…";
}

/// Python writes numbers that JSON does not have, such as Infinity; here they are as transformers 5 writes them,
/// {"__float__": "Infinity"}.
std::string without_python_numbers(std::string_view text) {
  std::string all;
  for (bool in_text = false; !text.empty();) {
    std::size_t length = 1;
    if (in_text) {
      if (text[0] == '\\') length = std::min<std::size_t>(2, text.size());
    } else {
      for (const std::string_view number : {"NaN", "Infinity", "-Infinity"})
        if (text.starts_with(number)) length = number.size();
    }
    const std::string_view part = text.substr(0, length);
    if (part == "\"") in_text = !in_text;
    all += in_text || length == 1 ? std::string(part) : R"({"__float__": ")" + std::string(part) + "\"}";
    text.remove_prefix(length);
  }
  return all;
}
}  // namespace

ForeignConfig::ForeignConfig(Json json, std::string name, std::string type)
    : json_(std::move(json)), name_(std::move(name)), type_(std::move(type)) {}

ForeignConfig::ForeignConfig(std::string_view text, std::string name)
    : json_(Json::parse(without_python_numbers(text), name)), name_(std::move(name)) {
  if (!json_.is_object()) fail("expected an object");
  type_ = this->text("model_type", "");
  if (type_.empty()) fail("expected a model_type, found none");
  if (const Json* all = find("architectures"); all != nullptr && all->is_array() && !all->items().empty()) {
    if (!all->items()[0].is_string()) fail("architectures: expected names");
    class_ = all->items()[0].text();
  }
}

void ForeignConfig::fail(const std::string& what) const { throw Error(name_ + ": " + what); }

const Json* ForeignConfig::find(const char* key) const {
  const Json* found = json_.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

bool ForeignConfig::has(const char* key) const { return find(key) != nullptr; }

Index ForeignConfig::size(const char* key) const {
  const Json* found = find(key);
  if (found == nullptr) fail(std::string("expected a key ") + key + ", found none");
  if (!found->is_integer() || found->number() < 1 || found->number() > double(kLargest))
    fail(std::string(key) + ": expected a whole number from 1 to " + std::to_string(kLargest) + ", got " + shown(*found));
  return found->integer();
}

Index ForeignConfig::layers(const char* key) const {
  const Index count = size(key);
  if (count > kMostLayers)
    fail(std::string(key) + ": expected a whole number from 1 to " + std::to_string(kMostLayers) + ", got " +
         std::to_string(count));
  return count;
}

Index ForeignConfig::size(const char* key, Index fallback) const { return has(key) ? size(key) : fallback; }

double ForeignConfig::number(const char* key, double fallback) const {
  const Json* found = find(key);
  if (found == nullptr) return fallback;
  if (!found->is_number() || !std::isfinite(found->number()))
    fail(std::string(key) + ": expected a number, got " + shown(*found));
  return found->number();
}

bool ForeignConfig::flag(const char* key, bool fallback) const {
  const Json* found = find(key);
  if (found == nullptr) return fallback;
  if (!found->is_boolean()) fail(std::string(key) + ": expected true or false, got " + shown(*found));
  return found->boolean();
}

std::string ForeignConfig::text(const char* key, const char* fallback) const {
  const Json* found = find(key);
  if (found == nullptr) return fallback;
  if (!found->is_string()) fail(std::string(key) + ": expected a text, got " + shown(*found));
  return found->text();
}

std::string ForeignConfig::text_at(const char* key, Index place, const std::vector<const char*>& known,
                                   std::size_t fallback) const {
  const Json* found = find(key);
  if (found == nullptr) return known[fallback];
  if (!found->is_array() || place >= Index(found->items().size()))
    fail(std::string(key) + ": expected a list with a text for each layer");
  const Json& own = found->items()[std::size_t(place)];
  std::string all;
  for (const char* word : known) {
    if (own == Json(word)) return word;
    all += (all.empty() ? "" : " or ") + std::string(word);
  }
  fail(std::string(key) + ": expected " + all + ", got " + shown(own));
}

ForeignConfig ForeignConfig::part(const char* key) const {
  const Json* found = find(key);
  if (found == nullptr || !found->is_object()) fail(std::string(key) + ": expected an object");
  return {*found, name_ + ": " + key, type_};
}

std::string ForeignConfig::one_of(const char* key, std::initializer_list<const char*> known, const char* fallback) const {
  std::string value = text(key, fallback), all;
  for (const char* word : known) {
    if (value == word) return value;
    all += (all.empty() ? "" : " or ") + std::string(word);
  }
  fail(std::string(key) + ": expected " + all + ", got " + value);
}

void ForeignConfig::without(std::initializer_list<const char*> keys) const {
  for (const char* key : keys) {
    const Json* found = find(key);
    if (found == nullptr || *found == Json(false) || *found == Json("")) continue;
    if (found->is_number() && (found->number() == 0 || (found->number() == 1 && std::string_view(key).ends_with("_multiplier"))))
      continue;
    if (found->is_array() && found->items().empty()) continue;
    fail(std::string(key) + ": expected none, which is all that is supported, got " + shown(*found));
  }
}

void ForeignConfig::without_limit(const char* key) const {
  const Json* limit = find(key);
  const bool free =
      limit == nullptr || (limit->is_array() && limit->items().size() == 2 && limit->items()[0].is_number() &&
                           limit->items()[0].number() == 0 && limit->items()[1] == Json::object({{"__float__", "Infinity"}}));
  if (!free) fail(std::string(key) + ": expected none, which is all that is supported, got " + shown(*limit));
}

std::vector<std::string> ForeignConfig::labels() const {
  std::vector<std::string> names;
  const Json* all = find("id2label");
  if (all == nullptr || !all->is_object()) return names;
  names.resize(all->members().size());
  for (const auto& [id, label] : all->members()) {
    Index place = 0;
    if (!parse_number(id, place) || place < 0 || place >= Index(names.size()) || !label.is_string())
      fail("id2label: expected names by number, got " + id);
    names[std::size_t(place)] = label.text();
  }
  return names;
}

Index ForeignConfig::classes() const {
  const std::vector<std::string> names = labels();
  return names.empty() ? size("num_labels", 2) : Index(names.size());
}

const Architecture& find_architecture(const ForeignConfig& config) {
  std::string known;
  for (const Architecture* one : architectures())
    for (const std::string_view type : one->types) {
      if (type == config.type()) return *one;
      known += (known.empty() ? "" : ", ") + std::string(type);
    }
  config.fail("model_type: expected one of " + known + ", got " + config.type());
}

namespace {
/// Layers that are alike have as many numbers.
double numbers_of(const ModelConfig& model) {
  std::map<std::pair<std::string, Settings>, double> known;
  ModelConfig part = model;
  part.layers = {model.layers[0]};
  // What is not trained is a weight, too.
  double all = double(cost_of(part, 1).parameters) + (model.fixed_positions ? double(model.length) * double(model.width) : 0);
  for (std::size_t i = 1; i < model.layers.size(); ++i) {
    const LayerConfig& layer = model.layers[i];
    const auto [found, is_new] = known.try_emplace({layer.preset, layer.options});
    if (is_new) {
      part.layers = {layer};
      const Index one = cost_of(part, 1).parameters;
      part.layers = {layer, layer};
      found->second = double(cost_of(part, 1).parameters - one);
    }
    all += found->second;
  }
  return all;
}
}  // namespace

ModelConfig model_of(const Architecture& architecture, const ForeignConfig& config) {
  ModelConfig model = architecture.model(config);
  // A language model with this switch off sees later tokens, whatever its layers are.
  if (model.kind == ModelKind::language && !config.flag("is_causal", true))
    config.fail("is_causal: expected true, which is all that is supported, got false");
  return model;
}

ModelConfig model_of(const Architecture& architecture, const ForeignConfig& config, Index numbers) {
  // Some weights may be missing, which are then listed; a config that asks for far more than there is means harm.
  constexpr double kFar = 64;
  ModelConfig model = model_of(architecture, config);
  double wanted = 0;
  try {
    check(model);
    wanted = numbers_of(model);
  } catch (const Error& problem) {
    config.fail(problem.what());
  }
  if (wanted > kFar * double(numbers))
    config.fail("expected weights of " + text_of_option(wanted) + " numbers for these sizes, found " + std::to_string(numbers));
  return model;
}

WeightTable weights_of(const Architecture& architecture, const ForeignConfig& config) {
  WeightTable table;
  architecture.weights(config, table);
  return table;
}

bool is_foreign(std::string_view config) {
  const std::optional<Json> json = Json::try_parse(without_python_numbers(config));
  return json && json->is_object() && json->find("model_type") != nullptr;
}

std::string text_of_option(double number) { return Json(number).dump(); }

namespace {
/// How many channels of a head are rotated, unless all.
void rope_size(const ForeignConfig& config, const ForeignConfig& angles, Settings& options, double part) {
  const double factor = angles.number("partial_rotary_factor", config.number("partial_rotary_factor", part));
  if (factor <= 0 || factor > 1) config.fail("partial_rotary_factor: expected a number up to 1, got " + text_of_option(factor));
  if (factor < 1) options["rope_size"] = std::to_string(Index(factor * std::stod(options.at("key"))));
}
}  // namespace

void rope_options(const ForeignConfig& config, Settings& options, double theta, double part) {
  // Newer files have all of it in rope_parameters. Where somebody added rope_scaling, that counts, as in transformers.
  const Json* const scaled = config.find("rope_scaling");
  const bool added = scaled != nullptr && !(scaled->is_object() && scaled->members().empty());
  const char* key = config.has("rope_parameters") && !added ? "rope_parameters" : "rope_scaling";
  if (!config.has(key)) {
    options["rope_base"] = text_of_option(theta > 0 ? theta : config.number("rope_theta", 10000));
    rope_size(config, config, options, part);
    return;
  }
  const ForeignConfig scaling = config.part(key);
  options["rope_base"] = text_of_option(theta > 0 ? theta : scaling.number("rope_theta", config.number("rope_theta", 10000)));
  rope_size(config, scaling, options, part);
  const std::string type = scaling.text("rope_type", scaling.text("type", "default").c_str());
  if (type == "default") return;
  if (type != "linear" && type != "llama3") scaling.fail("rope_type: expected default, linear or llama3, got " + type);
  const double factor = scaling.number("factor", 1);
  if (factor <= 0) scaling.fail("factor: expected a positive number, got " + text_of_option(factor));
  options["rope_factor"] = text_of_option(factor);
  if (type == "linear") return;
  options["rope_low"] = text_of_option(scaling.number("low_freq_factor", 1));
  options["rope_high"] = text_of_option(scaling.number("high_freq_factor", 4));
  options["rope_length"] = text_of_option(scaling.number("original_max_position_embeddings", 8192));
}

void frame_weights(const ForeignConfig& config, WeightTable& table, const Frame& frame,
                   const std::function<void(const WeightTable::Scope& layer, Index number)>& layer) {
  const WeightTable::Scope all = table.in("", config.is_for("Model") ? "" : frame.base);
  all.linear("embedding", frame.embedding);
  all.take("norm.weight", std::string(frame.norm) + ".weight").plus(frame.norm_plus);
  if (frame.norm_bias) all.take("norm.bias", std::string(frame.norm) + ".bias");
  for (Index i = 0; i < config.layers(); ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    layer(all.in(at, at), i);
  }
  if (frame.tied)
    table.leave("lm_head.weight");
  else
    table.in("", "").linear("head", "lm_head");
}

void projections(const WeightTable::Scope& scope, std::initializer_list<const char*> names, bool bias) {
  for (const char* name : names) scope.linear(name, std::string(name) + "_proj", bias);
}

void mlp_weights(const WeightTable::Scope& layer, std::string_view theirs, bool bias) {
  projections(layer.in("mlp.", theirs), {"gate", "up", "down"}, bias);
}

}  // namespace isomer
