#include "isomer/models/model_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "isomer/base/error.h"
#include "isomer/io/files.h"
#include "isomer/io/text.h"
#include "isomer/models/foreign/architecture.h"
#include "isomer/models/foreign/gguf_model.h"
#include "isomer/models/tokenizers/chat.h"

namespace isomer {

namespace {
/// Who keeps weights where they are in their file. Those in 32 bits are copied: pages of files are small, and a token at a time
/// reads them more slowly than pages of memory, which are large; with 16 bits that costs less.
std::shared_ptr<const void> owner_of(const MappedSafetensors& file, Type storage) {
  return storage == Type::f32 ? nullptr : std::make_shared<const MappedSafetensors>(file);
}

GivenNumbers given(const TensorViews& weights, std::shared_ptr<const void> owner) {
  return owner == nullptr ? GivenNumbers{} : GivenNumbers{weights, std::move(owner)};
}
}  // namespace

LoadedModel::LoadedModel(const ModelConfig& config, const TensorViews& weights, std::unique_ptr<const Tokenizer> reader,
                         Type storage, std::shared_ptr<const void> owner)
    : parameters(storage, given(weights, std::move(owner))), model(config, parameters), tokenizer(std::move(reader)) {
  parameters.assign(weights);
}

LoadedModel::LoadedModel(const ModelConfig& config, const WeightTable& table, const TensorViews& theirs,
                         std::unique_ptr<const Tokenizer> reader, Type storage, std::shared_ptr<const void> owner)
    : parameters(storage, given(plain_weights(table, theirs), std::move(owner))),
      model(config, parameters),
      tokenizer(std::move(reader)) {
  std::vector<WeightShape> shapes;
  for (const Parameter<float>& p : parameters.all()) shapes.push_back({p.name(), p.spec.shape});
  parameters.assign(take_weights(table, shapes, theirs).views);
}

LoadedModel::LoadedModel(const ModelConfig& config, Foreign from, std::unique_ptr<const Tokenizer> reader, Type storage)
    : LoadedModel(config, from.table, from.weights.views(), std::move(reader), storage, owner_of(from.weights, storage)) {
  foreign = std::move(from);
}

namespace {
std::string pooling_file(const std::string& folder) { return folder + "/1_Pooling/config.json"; }
}  // namespace

std::string folder_config(const std::string& folder, const std::string& text) {
  if (!is_foreign(text) || !is_there(pooling_file(folder))) return text;
  const std::string name = ForeignConfig(text, folder + "/config.json").model_class();
  const std::size_t head = name.find("For");
  if (head == std::string::npos) return text;
  Json json = Json::parse(text, folder + "/config.json");
  json.set("architectures", Json::Array{name.substr(0, head) + "Model"});
  return json.dump(2) + "\n";
}

namespace {
/// How sentence-transformers pools. Since its sixth version there is one key, a word or a list; before, a switch for each way.
std::string pooling_mode(const Json& json, const std::string& path) {
  constexpr std::array<std::array<const char*, 2>, 6> kSwitches{{{"pooling_mode_cls_token", "cls"},
                                                                 {"pooling_mode_mean_tokens", "mean"},
                                                                 {"pooling_mode_lasttoken", "lasttoken"},
                                                                 {"pooling_mode_max_tokens", "max"},
                                                                 {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
                                                                 {"pooling_mode_weightedmean_tokens", "weightedmean"}}};
  Json modes = Json::array();
  if (const Json* named = json.find("pooling_mode"); named != nullptr) {
    modes = named->is_array() ? *named : Json(Json::Array{*named});
  } else {
    for (const auto& [key, mode] : kSwitches)
      if (const Json* on = json.find(key); on != nullptr && *on == Json(true)) modes.push(mode);
    if (modes.items().empty()) return "mean";
  }
  for (const char* known : {"mean", "cls", "lasttoken"})
    if (modes == Json(Json::Array{known})) return known;
  throw Error(path + ": pooling_mode: expected mean, cls or lasttoken, got " + modes.dump());
}

/// Another module, such as a dense layer, would make another vector of it.
void require_known_modules(const std::string& path) {
  if (!is_there(path)) return;
  const Json json = Json::parse(read_text(path, kLargestConfig), path);
  if (!json.is_array()) throw Error(path + ": expected a list of modules");
  for (const Json& module : json.items()) {
    const Json* type = module.is_object() ? module.find("type") : nullptr;
    if (type == nullptr || !type->is_string()) throw Error(path + ": expected modules with a type");
    const std::string name = type->text().substr(type->text().rfind('.') + 1);
    if (name != "Transformer" && name != "Pooling" && name != "Normalize")
      throw Error(path + ": expected Transformer, Pooling and Normalize, which is all that is supported, got " + name);
  }
}
}  // namespace

void read_pooling(const std::string& folder, ModelConfig& config) {
  const std::string path = pooling_file(folder);
  if (config.kind != ModelKind::embedding || !is_there(path)) return;
  const Json json = Json::parse(read_text(path, kLargestConfig), path);
  if (!json.is_object()) throw Error(path + ": expected an object");
  const std::string mode = pooling_mode(json, path);
  config.pool = mode == "cls" ? Pool::first : mode == "lasttoken" ? Pool::last : Pool::mean;
  require_known_modules(folder + "/modules.json");
}

namespace {

/// Tokens of a text that a sentence encoder reads; 0 where its folder does not say.
Index read_most_tokens(const std::string& folder) {
  const std::string path = folder + "/sentence_bert_config.json";
  if (!is_there(path)) return 0;
  const Json json = Json::parse(read_text(path, kLargestConfig), path);
  const Json* most = json.is_object() ? json.find("max_seq_length") : nullptr;
  if (most == nullptr || most->is_null()) return 0;
  if (!most->is_integer() || most->integer() < 1) throw Error(path + ": max_seq_length: expected a whole number of at least 1");
  return most->integer();
}

/// Throws Error with the file in front.
template <class Make>
std::unique_ptr<LoadedModel> with_place(const std::string& folder, Make make) {
  try {
    return make();
  } catch (const Error& problem) {
    throw Error(folder + "/model.safetensors" + ": " + problem.what());
  }
}
Index numbers_in(const TensorViews& weights) {
  Index all = 0;
  for (const auto& [name, view] : weights) all += view.size();
  return all;
}
/// That of most numbers, if matrices can be kept in it.
Type type_of_most(const TensorViews& weights) {
  std::map<Type, Index> sizes;
  for (const auto& [name, view] : weights) sizes[view.type] += view.size();
  const auto most = std::ranges::max_element(sizes, {}, [](const auto& one) { return one.second; });
  const bool sixteen = most != sizes.end() && (most->first == Type::bf16 || most->first == Type::f16);
  return sixteen ? most->first : Type::f32;
}

std::unique_ptr<LoadedModel> load_gguf(const std::string& path, std::optional<Type> storage) {
  GgufModel file = read_gguf_model(path, storage);
  const ForeignConfig theirs(file.config, path);
  const Architecture& architecture = find_architecture(theirs);
  const auto weights = std::make_shared<Tensors>(std::move(file.weights));
  const TensorViews views = views_of(*weights);
  const ModelConfig config = model_of(architecture, theirs, numbers_in(views));
  try {
    // The weights by our names, which are views into theirs.
    const WeightTable table = weights_of(architecture, theirs);
    auto loaded = std::make_unique<LoadedModel>(config, table, views, std::move(file.tokenizer),
                                                storage.value_or(type_of_most(views)), weights);
    // What was copied, to be joined with others or in another type, is not kept twice.
    std::set<const std::byte*> in_place;
    for (const Parameter<float>& one : loaded->parameters.all()) in_place.insert(one.numbers().data);
    std::erase_if(*weights, [&](const auto& one) { return !in_place.contains(one.second.bytes()); });
    loaded->ends = std::move(file.ends);
    loaded->chat_template = std::move(file.chat_template);
    return loaded;
  } catch (const Error& problem) {
    throw Error(path + ": " + problem.what());
  }
}

/// The tokens that end a text, by a member of a config; empty where it has none.
std::vector<std::int64_t> ends_of(const Json& config) {
  std::vector<std::int64_t> ends;
  if (const Json* end = config.find("eos_token_id"); end != nullptr)
    for (const Json& one : end->is_array() ? end->items() : Json::Array{*end})
      if (one.is_integer()) ends.push_back(one.integer());
  return ends;
}

/// Of config.json, generation_config.json, which counts where it says something (models that were taught conversations often have
/// more ends there), and tokenizer_config.json.
void read_speech(const std::string& folder, const ForeignConfig& config, LoadedModel& loaded) {
  if (const std::string own = folder + "/generation_config.json"; is_there(own)) {
    const Json json = Json::parse(read_text(own, kLargestConfig), own);
    if (!json.is_object()) throw Error(own + ": expected an object");
    loaded.ends = ends_of(json);
  }
  if (loaded.ends.empty()) loaded.ends = ends_of(config.json());
  const std::string path = folder + "/tokenizer_config.json";
  if (is_there(path)) loaded.chat_template = chat_template_of_config(read_text(path, kLargestConfig), path);
}
/// What a sentence encoder's folder says beside its model, unless that is what a folder without it means.
void write_pooling(const std::string& folder, const LoadedModel& loaded) {
  const ModelConfig& config = loaded.model.config();
  if (config.kind != ModelKind::embedding || (config.pool == Pool::mean && loaded.most_tokens == 0)) return;
  const auto write = [&](const std::string& path, const Json& json) { write_text(path, json.dump(2) + "\n"); };
  const auto module = [](const char* name, const char* path) {
    return Json::object({{"path", path}, {"type", std::string("sentence_transformers.models.") + name}});
  };
  std::error_code problem;
  std::filesystem::create_directories(folder + "/1_Pooling", problem);
  write(pooling_file(folder), Json::object({{"word_embedding_dimension", config.width},
                                            {"pooling_mode_cls_token", config.pool == Pool::first},
                                            {"pooling_mode_mean_tokens", config.pool == Pool::mean},
                                            {"pooling_mode_lasttoken", config.pool == Pool::last}}));
  write(folder + "/modules.json", Json::Array{module("Transformer", ""), module("Pooling", "1_Pooling")});
  if (loaded.most_tokens > 0)
    write(folder + "/sentence_bert_config.json", Json::object({{"max_seq_length", loaded.most_tokens}}));
}
}  // namespace

std::unique_ptr<LoadedModel> load_model(const std::string& path, std::optional<Type> wanted) {
  if (const std::string gguf = find_gguf(path); !gguf.empty()) return load_gguf(gguf, wanted);
  const std::string folder = find_model(path), name = folder + "/config.json";
  MappedModelFiles files = map_model_files(folder);
  files.config = folder_config(folder, files.config);
  const Type storage = wanted ? *wanted : type_of_most(files.weights.views());
  const auto tokenizer_for = [&](const ModelConfig& config) -> std::unique_ptr<const Tokenizer> {
    if (config.vocabulary == 0) return nullptr;
    return tokenizer_from(files.tokenizer, folder + "/tokenizer.json", config.vocabulary);
  };
  if (!is_foreign(files.config)) {
    const ModelConfig config = model_config(files.config, name);
    std::unique_ptr<const Tokenizer> tokenizer = tokenizer_for(config);
    return with_place(folder, [&] {
      return std::make_unique<LoadedModel>(config, files.weights.views(), std::move(tokenizer), storage,
                                           owner_of(files.weights, storage));
    });
  }
  const ForeignConfig theirs(files.config, name);
  const Architecture& architecture = find_architecture(theirs);
  ModelConfig config = model_of(architecture, theirs, numbers_in(files.weights.views()));
  read_pooling(folder, config);
  std::unique_ptr<const Tokenizer> tokenizer = tokenizer_for(config);
  Foreign from{files.config, weights_of(architecture, theirs), files.weights};
  if (theirs.is_for("Model")) from.table.find_place(from.weights.views());
  auto loaded =
      with_place(folder, [&] { return std::make_unique<LoadedModel>(config, std::move(from), std::move(tokenizer), storage); });
  read_speech(folder, theirs, *loaded);
  if (config.kind == ModelKind::embedding) loaded->most_tokens = read_most_tokens(folder);
  return loaded;
}

std::string left_out(const LoadedModel& model) {
  if (!model.foreign) return "";
  for (const WeightTable::Part& part : model.foreign->table.parts()) {
    const Index count = std::ranges::count_if(model.foreign->weights.views(),
                                              [&](const auto& weight) { return weight.first.starts_with(part.start); });
    if (count > 0) return part.name + " is left out: " + std::to_string(count) + " weights below " + part.start;
  }
  return "";
}

void save_model(const std::string& folder, const LoadedModel& model) {
  ModelFiles files{.config = model.foreign ? model.foreign->config : to_json(model.model.config()),
                   .weights = model.parameters.tensors(),
                   .tokenizer = model.tokenizer ? model.tokenizer->to_json() : ""};
  if (model.foreign)
    files.weights = put_weights(model.foreign->table, views_of(files.weights), model.foreign->weights.views(), Putting::weights);
  write_model_files(folder, files);
  if (model.foreign) write_pooling(folder, model);
}

}  // namespace isomer
