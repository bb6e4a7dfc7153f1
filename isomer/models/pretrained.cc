#include "isomer/models/pretrained.h"

#include <algorithm>
#include <map>

#include "isomer/base/error.h"
#include "isomer/io/files.h"
#include "isomer/io/text.h"
#include "isomer/models/foreign/architecture.h"
#include "isomer/models/foreign/gguf_model.h"
#include "isomer/models/model_files.h"

namespace isomer {

namespace {
constexpr const char* kTokenizerFile = "/tokenizer.json";

/// A head for sequences in place of whatever a model has.
ModelConfig with_head(ModelConfig config, const Classes& classes) {
  switch (config.kind) {
    case ModelKind::language:
      config.kind = ModelKind::classifier;
      config.pool = Pool::last;
      break;
    case ModelKind::masked: config.pool = Pool::first; [[fallthrough]];
    case ModelKind::embedding: config.kind = config.vocabulary > 0 ? ModelKind::encoder : ModelKind::vision; break;
    case ModelKind::classifier:
    case ModelKind::encoder:
    case ModelKind::vision: break;
    default: throw Error("expected a model that classes can be read from, got one of kind " + std::string(name_of(config.kind)));
  }
  config.head_transform = config.head_bias = false;
  config.logit_cap = 0;
  config.classes = classes.count;
  config.labels = classes.labels;
  return config;
}

/// The config.json of the same model as a classifier of its library; empty: it has none.
std::string classifier_text(const ForeignConfig& config, const Classes& classes) {
  const std::string& name = config.model_class();
  std::size_t end = name.find("For");
  if (end == std::string::npos && name.ends_with("Model")) end = name.size() - std::string_view("Model").size();
  if (end == std::string::npos) return "";
  Json json = config.json(), names = Json::object(), numbers = Json::object();
  for (Index i = 0; i < classes.count; ++i) {
    const std::string label = classes.labels.empty() ? "LABEL_" + std::to_string(i) : classes.labels[std::size_t(i)];
    names.set(std::to_string(i), label);
    numbers.set(label, i);
  }
  const char* const head = config.has("image_size")     ? "ForImageClassification"
                           : config.has("num_mel_bins") ? "ForAudioClassification"
                                                        : "ForSequenceClassification";
  json.set("architectures", Json::Array{name.substr(0, end) + head});
  json.set("num_labels", classes.count);
  json.set("id2label", std::move(names));
  json.set("label2id", std::move(numbers));
  return json.dump(2) + "\n";
}

/// A model of another library with the table of its weights.
struct Description {
  std::string text;  // of config.json
  ModelConfig model;
  WeightTable table;

  Description(const std::string& config, const std::string& name) : text(config) {
    const ForeignConfig theirs(config, name);
    const Architecture& architecture = find_architecture(theirs);
    model = model_of(architecture, theirs);
    table = weights_of(architecture, theirs);
  }
};

/// The same model as a classifier, if its architecture has one.
std::optional<Description> classifier(const std::string& config, const std::string& name, const Classes& classes) {
  const std::string text = classifier_text(ForeignConfig(config, name), classes);
  if (text.empty()) return {};
  try {
    Description found(text, name);
    if (found.model.kind != ModelKind::encoder && found.model.kind != ModelKind::vision) return {};
    found.model.labels = classes.labels;
    return found;
  } catch (const Error&) {
    return {};  // not every architecture has one
  }
}

/// The name of a tensor without what stands in front for the model in it: "bert.pooler.dense.weight".
std::string_view inner(std::string_view name) { return name.substr(name.find('.') + 1); }

/// The tensors of a folder by the names that another head's table gives them.
TensorViews renamed(const TensorViews& theirs, const WeightTable& own, const WeightTable& other) {
  std::map<std::string, std::string> old;
  for (const WeightRule& rule : own.rules()) old.emplace(rule.ours, theirs.contains(rule.theirs) ? rule.theirs : rule.also);
  TensorViews views;
  for (const WeightRule& rule : other.rules()) {
    auto found = theirs.find(rule.theirs);
    if (found == theirs.end()) found = theirs.find(std::string(inner(rule.theirs)));
    // Whatever the model in it is called; another head is another, though it has our name.
    if (const auto known = old.find(rule.ours); found == theirs.end() && known != old.end() && !rule.ours.starts_with("head."))
      found = theirs.find(known->second);
    if (found != theirs.end()) views.emplace(rule.theirs, found->second);
  }
  for (const auto& [name, view] : theirs)
    if (other.in_part(name)) views.emplace(name, view);
  return views;
}

/// Does a model compute what the other config says, whatever it starts with and is trained with?
bool same_model(ModelConfig a, const ModelConfig& b) {
  a.dropout = b.dropout;
  a.deviation = b.deviation;
  a.qk_identity = b.qk_identity;
  a.labels = b.labels;
  return to_json(a) == to_json(b);
}

/// What the folder has none of becomes what ours is.
void add_new_weights(const WeightTable& table, const TensorViews& ours, TensorViews& theirs) {
  for (const WeightRule& rule : table.rules())
    if (const auto own = ours.find(rule.ours);
        own != ours.end() && !rule.optional && rule.known.empty() && !theirs.contains(rule.theirs))
      theirs.emplace(rule.theirs, own->second);
}

Tensor numbers_of(const TensorView& view) {
  Tensor tensor(Type::f32, view.dims());
  copy_numbers(view, mutable_view_of(tensor));
  return tensor;
}
}  // namespace

bool is_bare_model(const std::string& path) { return is_there(path + "/config.json") || !find_gguf(path).empty(); }

ModelConfig describe_model(const std::string& path, const std::optional<Classes>& classes) {
  const std::string gguf = find_gguf(path), folder = gguf.empty() ? find_model(path) : "";
  const std::string name = gguf.empty() ? folder + "/config.json" : gguf;
  const std::string text = gguf.empty() ? folder_config(folder, read_text(name, kLargestConfig)) : read_gguf_config(gguf);
  if (!is_foreign(text)) {
    const ModelConfig own = model_config(text, name);
    return classes ? with_head(own, *classes) : own;
  }
  // A sentence encoder's folder says which vector stands for a text, and that stays so.
  const bool pooled = is_there(folder + "/1_Pooling/config.json");
  if (classes && !pooled)
    if (const auto own = classifier(text, name, *classes)) return own->model;
  ModelConfig config = Description(text, name).model;
  read_pooling(folder, config);
  return classes ? with_head(config, *classes) : config;
}

Tensors read_weights(const std::string& path) {
  if (find_gguf(path).empty()) {
    // Of a model of ours all that is there, whatever its config says.
    const std::string folder = find_model(path);
    if (!is_foreign(read_text(folder + "/config.json", kLargestConfig))) return read_model_files(folder).weights;
  }
  const auto loaded = load_model(path);
  Tensors weights = loaded->parameters.tensors();
  if (!loaded->foreign) return weights;
  const Foreign& from = *loaded->foreign;
  const auto more = classifier(from.config, path, {.count = 2});
  if (!more) return weights;
  const TensorViews views = renamed(from.weights.views(), from.table, more->table);
  for (const WeightRule& rule : more->table.rules())
    if (const auto found = views.find(rule.theirs); found != views.end() && !weights.contains(rule.ours))
      weights.emplace(rule.ours, numbers_of(found->second));
  return weights;
}

std::string read_tokenizer(const std::string& path) {
  if (const std::string gguf = find_gguf(path); !gguf.empty()) return read_gguf_tokenizer(gguf)->to_json();
  const std::string file = find_model(path) + kTokenizerFile;
  return is_there(file) ? read_text(file, kLargestTokenizer) : "";
}

Exported export_model(const std::string& folder, const LoadedModel& model, const std::string& origin) {
  const ModelConfig& config = model.model.config();
  ModelFiles files{.config = to_json(config),
                   .weights = model.parameters.tensors(),
                   .tokenizer = model.tokenizer ? model.tokenizer->to_json() : ""};
  Exported what = Exported::ours;
  if (!origin.empty() && find_gguf(origin).empty()) {
    const MappedModelFiles there = map_model_files(find_model(origin));
    if (is_foreign(there.config)) {
      const Description own(there.config, origin);
      const auto classes = classifier(there.config, origin, {.count = config.classes, .labels = config.labels});
      const Description* const target = same_model(config, own.model)                   ? &own
                                        : classes && same_model(config, classes->model) ? &*classes
                                                                                        : nullptr;
      if (target != nullptr) {
        const TensorViews ours = views_of(files.weights);
        TensorViews theirs = renamed(there.weights.views(), own.table, target->table);
        add_new_weights(target->table, ours, theirs);
        Tensors weights = put_weights(target->table, ours, theirs, Putting::weights);
        files.config = target->text;
        files.weights = std::move(weights);
        what = Exported::hugging_face;
      }
    }
  }
  write_model_files(folder, files);
  return what;
}

}  // namespace isomer
