#include "isomer/train/session.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "isomer/base/rng.h"
#include "isomer/base/stopwatch.h"
#include "isomer/base/suggest.h"
#include "isomer/mixers/preset.h"
#include "isomer/nn/init.h"

namespace isomer {

namespace {
using nlohmann::json;

// Format of state.json: a run of a newer one is refused.
constexpr int kStateVersion = 1;
// Streams of random numbers beside those of parameters and data.
constexpr std::uint64_t kWindowStream = 0x77696e646f77;

ModelKind natural_kind(TaskKind task) {
  switch (task) {
    case TaskKind::tokens: return ModelKind::language;
    case TaskKind::tokens_class: return ModelKind::classifier;
    case TaskKind::vectors: return ModelKind::regression;
    case TaskKind::vectors_class: return ModelKind::vision;
    case TaskKind::autoencoder: return ModelKind::autoencoder;
  }
  return ModelKind::language;
}

bool fits(ModelKind kind, TaskKind task) {
  const ModelKind natural = natural_kind(task);
  return kind == natural || (natural == ModelKind::classifier && kind == ModelKind::encoder);
}

/// A model of a checkpoint may know more tokens and classes than a task has.
void require_fit(const ModelConfig& model, const TaskShape& task, const std::string& name) {
  const char* const op = name.c_str();
  require(fits(model.kind, task.kind), op, "expected a task for models of the kind ", name_of(model.kind), ", got one for ",
          name_of(natural_kind(task.kind)));
  const auto at_most = [&](const char* what, Index most, Index got) {
    require(got <= most, op, "expected at most ", most, " ", what, ", which is what the model has, got ", got);
  };
  at_most("different tokens", model.vocabulary, task.vocabulary);
  if (model.outputs == 0) at_most("different labels", labels_of(model), task.classes);
  if (has_positions(model)) at_most("positions", model.length, task.length);
  require(task.features == model.features && task.outputs == model.outputs, op, "expected vectors of ", model.features, " and ",
          model.outputs, " numbers as inputs and targets, got ", task.features, " and ", task.outputs);
}

ModelKind kind_of(const Recipe& recipe, const TaskShape& task) {
  const std::string& name = recipe.model.kind;
  const ModelKind natural = natural_kind(task.kind);
  if (name == "auto") return natural;
  const ModelKind wanted = model_kind_named(name);
  if (!fits(wanted, task.kind))
    fail_in_recipe(
        recipe, "model.kind",
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
      fail_in_recipe(recipe, "mixer." + preset, error.what());
    }
    fail_in_recipe(recipe, "mixer." + preset, "options for " + preset + ", which no layer is");
  }
}

/// Options in [mixer.all] may be for mixers that other runs of a sweep have, but somebody must know them.
void check_shared_options(const Recipe& recipe) {
  const auto all = recipe.mixers.find("all");
  if (all == recipe.mixers.end()) return;
  std::vector<std::string> known;
  for (const Preset* preset : presets())
    for (const MixerOption& option : options_of(*preset, {})) known.push_back(option.name);
  for (const auto& [name, value] : all->second)
    if (std::ranges::find(known, name) == known.end())
      fail_in_recipe(recipe, "mixer.all", "unknown option " + name + did_you_mean(name, known));
}

Place place_of(const Recipe& recipe, std::size_t layer, std::size_t layers) {
  return {.width = recipe.model.width, .layer = Index(layer), .layers = Index(layers)};
}

/// Presets and options of all layers, checked.
std::vector<LayerConfig> layer_configs(const Recipe& recipe) {
  const std::vector<std::string> names = layers_of(recipe.model);
  check_mixer_tables(recipe, names);
  check_shared_options(recipe);
  std::vector<LayerConfig> layers;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Place place = place_of(recipe, i, names.size());
    try {
      layers.push_back({names[i], options_for(recipe, names[i], place)});
      (void)build_mixer(names[i], place, layers.back().options);
    } catch (const Error& error) {
      fail_in_recipe(recipe, recipe.mixers.contains(names[i]) ? "mixer." + names[i] : "model.layers", error.what());
    }
  }
  return layers;
}

/// The step where the checkpoint was made. Throws Error if it is of another model than this one or of a newer version.
Index step_of(const Checkpoint& checkpoint, const ModelConfig& model) {
  try {
    const json state = json::parse(checkpoint.state);
    const int version = state.at("version").get<int>();
    require(version <= kStateVersion, "state.json", "expected version ", kStateVersion, " or older, got ", version);
    require(to_json(model_config(checkpoint.config, "config.json")) == to_json(model), "checkpoint",
            "expected one of the recipe's model, got one of another (config.json differs)");
    return state.at("step").get<Index>();
  } catch (const json::exception& problem) {
    throw Error(std::string("state.json: ") + problem.what());
  }
}
}  // namespace

std::unique_ptr<Task> task_of(const Recipe& recipe) {
  try {
    (void)find_task(recipe.task);
  } catch (const Error& error) {
    fail_in_recipe(recipe, "task.name", error.what());
  }
  try {
    return make_task(recipe.task, recipe.task_settings);
  } catch (const Error& error) {
    fail_in_recipe(recipe, "task", error.what());
  }
}

ModelConfig model_of(const Recipe& recipe, const TaskShape& task) {
  const ModelRecipe& m = recipe.model;
  ModelConfig config;
  config.kind = kind_of(recipe, task);
  config.width = m.width;
  config.mlp = mlp_named(m.mlp);
  config.mlp_factor = m.mlp_factor;
  config.norm = m.norm == "rms" ? Norm::rms : Norm::layer;
  config.tied = m.tied;
  config.dropout = m.dropout;
  config.logit_cap = m.logit_cap;
  config.positions = m.positions;
  config.deviation = m.deviation;
  config.qk_identity = m.qk_identity;
  config.vocabulary = task.vocabulary;
  config.classes = task.classes;
  config.features = task.features;
  config.outputs = task.outputs;
  config.length = task.length;
  config.layers = layer_configs(recipe);
  return config;
}

Recipe resolved(const Recipe& recipe) {
  Recipe all = recipe;
  try {
    all.task_settings = TaskOptions(find_task(recipe.task), recipe.task_settings).values();
  } catch (const Error& error) {
    fail_in_recipe(recipe, "task", error.what());
  }
  all.mixers.clear();
  const std::vector<LayerConfig> layers = layer_configs(recipe);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto& [preset, given] = layers[i];
    if (all.mixers.contains(preset)) continue;
    Settings& settings = all.mixers[preset] = given;
    for (const MixerOption& option : options_of(find_preset(preset), place_of(recipe, i, layers.size()), given))
      if (option.applies) settings.emplace(option.name, option.fallback);
  }
  return all;
}

Session::Session(const Recipe& recipe, Context& context) : Session(recipe, task_of(recipe), context) {}

Session::Session(const Recipe& recipe, std::unique_ptr<Task> task, Context& context)
    : recipe_(recipe), context_(context), task_(std::move(task)), config_(model_of(recipe, task_->shape())), tape_(context) {
  prepare();
}

Session::Session(const Recipe& recipe, const ModelConfig& model, Context& context)
    : recipe_(recipe), context_(context), task_(task_of(recipe)), config_(model), tape_(context) {
  require_fit(model, task_->shape(), recipe.task);
  prepare();
}

void Session::prepare() {
  const TrainRecipe& t = recipe_.train;
  model_ = std::make_unique<Model<float>>(config_, parameters_);
  initialise(parameters_, t.seed);
  optimiser_options_ = {.kind = optimiser_named(t.optimiser),
                        .beta1 = t.beta1,
                        .beta2 = t.beta2,
                        .eps = t.eps,
                        .momentum = t.momentum,
                        .weight_decay = t.weight_decay,
                        .clip = t.clip};
  check(optimiser_options_);
  schedule_ = {.kind = schedule_named(t.schedule), .steps = t.steps, .warmup = t.warmup, .final_fraction = t.final_lr};
  try {
    check(schedule_);
  } catch (const Error& error) {
    fail_in_recipe(recipe_, "train.warmup", error.what());
  }
}

Optimiser<float>& Session::optimiser() {
  if (!optimiser_) optimiser_ = std::make_unique<Optimiser<float>>(parameters_, optimiser_options_);
  return *optimiser_;
}

Pass Session::pass_of(Index step) const {
  const TrainRecipe& t = recipe_.train;
  Pass pass{.seed = t.seed, .step = std::uint64_t(step), .dropout = config_.dropout > 0, .recompute = t.recompute};
  if (t.short_window == 0 || double(step) >= (1 - t.anneal) * double(t.steps)) return pass;
  Rng rng(t.seed, kWindowStream);
  rng.seek(std::uint64_t(step) * 4);
  if (rng.uniform() < t.short_probability) pass.window = t.short_window;
  return pass;
}

ModelInput input_of(const Batch& batch) {
  return {.B = batch.B,
          .T = batch.T,
          .tokens = batch.tokens,
          .labels = batch.labels,
          .inputs = batch.inputs,
          .targets = batch.targets,
          .lengths = batch.lengths};
}

StepReport Session::step() {
  const Stopwatch watch;
  const Index size = recipe_.train.batch;
  task_->fill(Split::train, std::uint64_t(done_ * size), size, batch_);
  StepReport report{.step = done_ + 1, .tokens = batch_.B * batch_.T, .data_seconds = watch.seconds()};
  const Pass pass = pass_of(done_);
  report.lr = recipe_.train.lr * factor(schedule_, done_);
  report.loss = model_->loss(tape_, input_of(batch_), pass).loss;
  if (std::isfinite(report.loss)) tape_.backward();
  tape_.clear();
  const bool finite = std::isfinite(report.loss);
  if (finite) report.gradient_norm = optimiser().step(report.lr, context_);
  if (!finite || !std::isfinite(report.gradient_norm)) {
    const std::string where =
        finite ? model_->first_gradient_not_finite(parameters_) : model_->first_not_finite(tape_, input_of(batch_), pass);
    parameters_.zero_gradients();
    throw NotFinite("step " + std::to_string(report.step) + ": the " + (finite ? "gradient" : "loss") + " is not finite" +
                    (where.empty() ? "" : "; " + where + " first produced such a value"));
  }
  parameters_.zero_gradients();
  ++done_;
  report.seconds = watch.seconds();
  return report;
}

EvalReport Session::evaluate(const EvalOptions& options) {
  require(options.examples > 0, "evaluate", "expected at least one example, got ", options.examples);
  const Index size = options.batch > 0 ? options.batch : recipe_.train.batch;
  const std::uint64_t all = task_->size(Split::test);
  const Index examples = all > 0 ? std::min(options.examples, Index(all)) : options.examples;
  Tape<float> tape(context_, Record::no);
  Score score;
  double loss = 0, labels = 0;
  for (Index first = 0; first < examples; first += size) {
    task_->fill(Split::test, std::uint64_t(first), std::min(size, examples - first), batch_);
    const ModelResult result = model_->loss(tape, input_of(batch_));
    loss += result.loss * double(result.count);
    labels += double(result.count);
    if (config_.outputs > 0) {
      score.add(batch_, result.outputs);
    } else {
      score.add(batch_, result.predicted);
      score.add_loss(result.loss * double(result.count), double(result.count));
    }
    tape.clear();
  }
  const Metric metric = task_->shape().metric;
  return {.loss = loss / labels, .value = score.value(metric), .metric = metric, .examples = examples};
}

Checkpoint Session::checkpoint(const std::string& extra_json) {
  const json state{{"version", kStateVersion}, {"step", done_}, {"seed", recipe_.train.seed}, {"extra", json::parse(extra_json)}};
  return {.step = done_,
          .model = parameters_.tensors(),
          .optimiser = optimiser().state(),
          .config = to_json(config_),
          .state = state.dump(1) + "\n"};
}

void Session::resume(const Checkpoint& checkpoint) {
  const Index step = step_of(checkpoint, config_);
  parameters_.assign(checkpoint.model);
  optimiser().load(checkpoint.optimiser);
  done_ = step;
}

void Session::resume_weights(const Checkpoint& checkpoint) {
  parameters_.assign(checkpoint.model);
  done_ = checkpoint.step;
}

std::unique_ptr<Session> open_run(const std::string& path, Context& context) {
  const RunFolder folder = RunFolder::open(path);
  auto session = std::make_unique<Session>(read_recipe(folder.recipe_path()), context);
  const Checkpoint last = folder.load_latest_model();
  (void)step_of(last, session->config());
  session->resume_weights(last);
  return session;
}

std::unique_ptr<Session> open_run_on(const std::string& path, const std::string& task, const Overrides& options,
                                     Context& context) {
  // Not a mistake of the run's recipe, which would be blamed for it.
  if (!task.empty()) (void)find_task(task);
  const RunFolder folder = RunFolder::open(path);
  const Checkpoint checkpoint = folder.load_latest_model();
  const Recipe recipe = read_recipe(folder.recipe_path());
  auto session = std::make_unique<Session>(with_task(recipe, task.empty() ? recipe.task : task, options),
                                           model_config(checkpoint.config, "config.json"), context);
  session->resume_weights(checkpoint);
  return session;
}

}  // namespace isomer
