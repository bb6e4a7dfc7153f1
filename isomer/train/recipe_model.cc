#include "isomer/train/recipe_model.h"

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/mixers/preset.h"
#include "isomer/models/pretrained.h"

namespace isomer {

namespace {
ModelKind natural_kind(TaskKind task) {
  switch (task) {
    case TaskKind::tokens: return ModelKind::language;
    case TaskKind::tokens_class: return ModelKind::classifier;
    case TaskKind::vectors: return ModelKind::regression;
    case TaskKind::vectors_class: return ModelKind::vision;
    case TaskKind::autoencoder: return ModelKind::autoencoder;
    case TaskKind::table: return ModelKind::table;
  }
  return ModelKind::language;
}

bool fits(ModelKind kind, TaskKind task) {
  const ModelKind natural = natural_kind(task);
  if (kind == ModelKind::embedding) return task == TaskKind::tokens || natural == ModelKind::classifier;  // reads no labels
  return kind == natural || (natural == ModelKind::classifier && kind == ModelKind::encoder);
}

ModelKind kind_of(const Recipe& recipe, const TaskShape& task) {
  const std::string& name = recipe.model.kind;
  const ModelKind natural = natural_kind(task.kind);
  if (name == "auto") return natural;
  const ModelKind wanted = model_kind_named(name);
  if (!fits(wanted, task.kind))
    fail_in_recipe(
        recipe, {"model.kind"},
        "expected a model.kind that fits the task " + recipe.task + " (" + std::string(name_of(natural)) + "), got " + name);
  return wanted;
}

/// Options for one layer: those of [mixer.all] that its preset knows, then its own.
Settings options_for(const Recipe& recipe, const std::string& preset, const Place& place) {
  Settings settings;
  const auto own = recipe.mixers.find(preset), all = recipe.mixers.find("all");
  if (own != recipe.mixers.end()) settings = own->second;
  if (all == recipe.mixers.end()) return settings;
  for (const MixerOption& option : options_of(find_preset(preset), place, settings))
    if (const auto given = all->second.find(option.name); given != all->second.end()) settings.insert(*given);
  return settings;
}

void check_mixer_tables(const Recipe& recipe, const std::vector<std::string>& layers) {
  for (const auto& [preset, settings] : recipe.mixers) {
    if (preset == "all" || std::find(layers.begin(), layers.end(), preset) != layers.end()) continue;
    try {
      (void)find_preset(preset);
    } catch (const Error& error) {
      fail_in_recipe(recipe, {"mixer." + preset}, error.what());
    }
    fail_in_recipe(recipe, {"mixer." + preset}, "options for " + preset + ", which no layer is");
  }
}

/// What the layers of a recipe stand in: a model that is there already (model.from), or one that they make.
struct Frame {
  explicit Frame(const Recipe& recipe) : names(layers_of(recipe.model)), width(recipe.model.width) {
    if (recipe.model.from.empty()) return;
    const ModelConfig there = described(recipe, {});
    width = there.width;
    own = there.layers;
    if (names.empty())
      for (const LayerConfig& layer : own) names.push_back(layer.preset);
    if (names.size() == 1) names.assign(own.size(), std::string(names[0]));  // one for all
    if (names.size() != own.size())
      fail_in_recipe(recipe, {"model.layers"},
                     "expected " + std::to_string(own.size()) + " model.layers, which is what the model in " + recipe.model.from +
                         " has, got " + std::to_string(names.size()));
  }
  /// Errors name the line of the recipe.
  static ModelConfig described(const Recipe& recipe, const std::optional<Classes>& classes) {
    try {
      return describe_model(recipe.model.from, classes);
    } catch (const Error& error) {
      fail_in_recipe(recipe, {"model.from"}, error.what());
    }
  }
  /// Is it a layer of the model that is there, and stays as it is?
  [[nodiscard]] bool keeps(const Recipe& recipe, std::size_t layer) const {
    return !own.empty() && own[layer].preset == names[layer] && !recipe.mixers.contains(names[layer]);
  }
  [[nodiscard]] Place place(std::size_t layer) const {
    return {.width = width, .layer = Index(layer), .layers = Index(names.size())};
  }

  std::vector<std::string> names;
  std::vector<LayerConfig> own = {};  // of the model that is there
  Index width;
};

bool among_options(const Preset& preset, const std::string& name) {
  return std::ranges::any_of(options_of(preset, {}), [&](const MixerOption& option) { return option.name == name; });
}

bool some_preset_has(const std::string& name) {
  return std::ranges::any_of(presets(), [&](const Preset* preset) { return among_options(*preset, name); });
}

void check_shared_options(const Recipe& recipe) {
  const std::vector<std::string> unused = unused_shared_options(recipe);
  if (unused.empty()) return;
  if (some_preset_has(unused[0])) fail_in_recipe(recipe, {"mixer.all"}, "no layer has the option " + unused[0]);
  std::vector<std::string> known;
  for (const std::string& layer : layers_of(recipe.model))
    for (const MixerOption& option : options_of(find_preset(layer), {})) known.push_back(option.name);
  fail_in_recipe(recipe, {"mixer.all"}, "unknown option " + unused[0] + did_you_mean(unused[0], known));
}

}  // namespace

std::vector<LayerConfig> layer_configs(const Recipe& recipe) {
  const Frame frame(recipe);
  const std::vector<std::string>& names = frame.names;
  check_mixer_tables(recipe, names);
  std::vector<LayerConfig> layers;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (frame.keeps(recipe, i)) {
      layers.push_back(frame.own[i]);
      continue;
    }
    const Place place = frame.place(i);
    try {
      layers.push_back({names[i], options_for(recipe, names[i], place)});
      if (!frame.own.empty()) layers.back().norm_place = frame.own[i].norm_place;
      (void)build_mixer(names[i], place, layers.back().options);
    } catch (const Error& error) {
      fail_in_recipe(recipe, {"mixer." + names[i], "model.layers", "mixer.all", "model.width"}, error.what());
    }
  }
  check_shared_options(recipe);
  return layers;
}

std::vector<std::string> unused_shared_options(const Recipe& recipe) {
  std::vector<std::string> unused;
  const auto all = recipe.mixers.find("all");
  if (all == recipe.mixers.end()) return unused;
  const std::vector<std::string> layers = layers_of(recipe.model);
  for (const auto& [name, value] : all->second)
    if (std::ranges::none_of(presets(), [&, &name = name](const Preset* preset) {
          return std::ranges::find(layers, preset->name) != layers.end() && among_options(*preset, name);
        }))
      unused.push_back(name);
  return unused;
}

void forget_options_of_other_layers(Recipe& recipe) {
  const auto from_file = [&](const std::string& key) { return recipe.lines.contains(key) && recipe.lines.at(key) > 0; };
  if (!recipe.lines.contains("model.layers") || from_file("model.layers")) return;
  for (const std::string& name : unused_shared_options(recipe))
    if (from_file("mixer.all." + name) && some_preset_has(name)) recipe.mixers["all"].erase(name);
}

std::unique_ptr<Task> task_of(const Recipe& recipe) {
  try {
    (void)find_task(recipe.task);
  } catch (const Error& error) {
    fail_in_recipe(recipe, {"task.name"}, error.what());
  }
  try {
    return make_task(recipe.task, recipe.task_settings);
  } catch (const Error& error) {
    fail_in_recipe(recipe, {"task"}, error.what());
  }
}

namespace {
/// The model of a folder with what the task reads off it.
ModelConfig pretrained_model(const Recipe& recipe, const TaskShape& task) {
  const bool of_sequences = task.kind == TaskKind::tokens_class || task.kind == TaskKind::vectors_class;
  std::optional<Classes> classes;
  if (of_sequences) classes = Classes{.count = task.classes, .labels = task.labels};
  ModelConfig config = Frame::described(recipe, classes);
  config.layers = layer_configs(recipe);
  config.dropout = recipe.model.dropout;
  try {
    require_fit(config, task, recipe.task);
  } catch (const Error& error) {
    fail_in_recipe(recipe, {"model.from", "task"}, error.what());
  }
  return config;
}
}  // namespace

const std::string& start_of(const Recipe& recipe) { return recipe.train.start.empty() ? recipe.model.from : recipe.train.start; }

void use_own_tokenizer(Recipe& recipe) {
  const std::string& from = recipe.model.from;
  if (from.empty() || recipe.task_settings.contains("tokenizer")) return;
  const std::span<const TaskType* const> all = tasks();
  const auto task = std::ranges::find(all, recipe.task, [](const TaskType* type) { return type->name; });
  if (task == all.end()) return;  // who makes it says so
  const std::vector<OptionSpec> options = options_of(**task);
  if (std::ranges::none_of(options, [](const OptionSpec& option) { return option.name == "tokenizer"; })) return;
  const std::string json = read_tokenizer(from);
  if (!json.empty() && tokenizer_from(json, from, Index(1) << 40)->is_text()) recipe.task_settings["tokenizer"] = from;
}

ModelConfig model_of(const Recipe& recipe, const TaskShape& task) {
  const ModelRecipe& m = recipe.model;
  if (!m.from.empty()) return pretrained_model(recipe, task);
  ModelConfig config;
  config.kind = kind_of(recipe, task);
  config.width = m.width;
  config.mlp = mlp_named(m.mlp);
  config.mlp_factor = m.mlp_factor;
  config.norm = m.norm == "rms" ? Norm::rms : Norm::layer;
  config.tied = m.tied;
  config.dropout = m.dropout;
  config.logit_cap = m.logit_cap;
  config.positions = m.positions == "true" || (m.positions == "auto" && config.kind == ModelKind::vision);
  config.deviation = m.deviation;
  config.qk_identity = m.qk_identity;
  config.vocabulary = task.vocabulary;
  config.classes = task.classes;
  config.features = task.features;
  config.outputs = task.outputs;
  config.length = task.length;
  config.labels = task.labels;
  config.layers = layer_configs(recipe);
  return config;
}

Schedule schedule_of(const Recipe& recipe) {
  const TrainRecipe& t = recipe.train;
  if (t.accumulate > t.batch)
    fail_in_recipe(
        recipe, {"train.accumulate"},
        "expected train.accumulate from 1 to train.batch = " + std::to_string(t.batch) + ", got " + std::to_string(t.accumulate));
  const Schedule schedule{.kind = schedule_named(t.schedule), .steps = t.steps, .warmup = t.warmup, .final_fraction = t.final_lr};
  try {
    check(schedule);
  } catch (const Error& error) {
    fail_in_recipe(recipe, {"train.warmup"}, error.what());
  }
  return schedule;
}

Recipe resolved(const Recipe& recipe) {
  (void)schedule_of(recipe);
  Recipe all = recipe;
  try {
    all.task_settings = TaskOptions(find_task(recipe.task), recipe.task_settings).values();
  } catch (const Error& error) {
    fail_in_recipe(recipe, {"task"}, error.what());
  }
  all.mixers.clear();
  const std::vector<LayerConfig> layers = layer_configs(recipe);
  const Frame frame(recipe);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string& preset = layers[i].preset;
    const Settings& given = layers[i].options;
    if (all.mixers.contains(preset) || frame.keeps(recipe, i)) continue;
    Settings& settings = all.mixers[preset] = given;
    for (const MixerOption& option : options_of(find_preset(preset), frame.place(i), given))
      if (option.applies) settings.emplace(option.name, option.fallback);
  }
  return all;
}

void require_fit(const ModelConfig& model, const TaskShape& task, const std::string& name) {
  const char* const op = name.c_str();
  require(fits(model.kind, task.kind), op, "expected a task for models of the kind ", name_of(model.kind), ", got one for ",
          name_of(natural_kind(task.kind)));
  const auto at_most = [&](const char* what, Index most, Index got) {
    require(got <= most, op, "expected at most ", most, " ", what, ", which is what the model has, got ", got);
  };
  const auto names = [](const std::vector<std::string>& labels) {
    std::string all;
    for (const std::string& label : labels) all += (all.empty() ? "" : ",") + label;
    return all;
  };
  require(model.labels.empty() || task.labels.empty() || model.labels == task.labels, op,
          "expected the labels of the model, task.labels=", names(model.labels), ", got ", names(task.labels));
  at_most("different tokens", model.vocabulary, task.vocabulary);
  if (model.outputs == 0 && model.kind != ModelKind::embedding) at_most("different labels", labels_of(model), task.classes);
  // Positions of squares of a picture stand row by row, so that fewer squares would have those of others.
  const Index places = model.length - (model.class_token ? 1 : 0);
  if (model.positions && model.features > 0)
    require(task.length == places, op, "expected pictures of ", places, " squares, which the model has positions for, got ",
            task.length);
  else if (model.positions)
    at_most("positions", model.length, task.length);
  require(task.features == model.features && task.outputs == model.outputs, op, "expected vectors of ", model.features, " and ",
          model.outputs, " numbers as inputs and targets, got ", task.features, " and ", task.outputs);
}

std::unique_ptr<Tokenizer> tokenizer_of(const Task& task) {
  const TaskShape& shape = task.shape();
  if (shape.vocabulary == 0) return nullptr;
  if (shape.bytes) return byte_tokenizer();
  if (const std::string json = task.tokenizer(); !json.empty()) return tokenizer_from(json, "tokenizer.json", shape.vocabulary);
  std::vector<std::string> words;
  bool numbers = true;
  for (std::int64_t token = 0; token < shape.vocabulary; ++token) {
    words.push_back(task.spell(token));
    numbers = numbers && words.back() == std::to_string(token);
  }
  return numbers ? number_tokenizer(shape.vocabulary) : word_tokenizer(std::move(words));
}

}  // namespace isomer
