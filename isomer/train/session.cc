#include "isomer/train/session.h"

#include <algorithm>
#include <cmath>

#include "isomer/base/rng.h"
#include "isomer/base/stopwatch.h"
#include "isomer/io/files.h"
#include "isomer/io/json.h"
#include "isomer/models/model_folder.h"
#include "isomer/nn/init.h"

namespace isomer {

namespace {
// Format of state.json: a run of a newer one is refused.
constexpr int kStateVersion = 1;
// Streams of random numbers beside those of parameters and data.
constexpr std::uint64_t kWindowStream = 0x77696e646f77;

/// What a checkpoint says of its run. Throws Error if it is of a newer version.
struct SavedState {
  Index step = 0;
  std::string data = {};  // the hash of what the task had read
};

SavedState state_of(const Checkpoint& checkpoint) {
  try {
    const Json state = Json::parse(checkpoint.state, "file");
    const Index version = state.at("version").integer();
    if (version > kStateVersion)
      throw Error("expected version " + std::to_string(kStateVersion) + " or older, got " + std::to_string(version));
    SavedState saved{.step = state.at("step").integer()};
    if (const Json* const data = state.find("data")) saved.data = data->text();
    return saved;
  } catch (const Error& problem) {
    throw Error(checkpoint.file("state.json") + ": " + problem.what());
  }
}

/// Names the file in what goes wrong with its contents.
void read_from(const std::string& file, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& problem) {
    throw Error(file + ": " + problem.what());
  }
}

void expect_same(const std::string& file, const ModelConfig& saved, const ModelConfig& here) {
  const Json there = Json::parse(to_json(saved), file), wanted = Json::parse(to_json(here), file);
  if (there == wanted) return;
  std::string names;  // of what differs
  for (const auto& [name, value] : wanted.members())
    if (const Json* other = there.find(name); other == nullptr || *other != value) names += (names.empty() ? "" : ", ") + name;
  throw OtherModel(file + ": expected the model of the recipe with its data, got one with other " + names);
}
}  // namespace

Session::Session(const Recipe& recipe, Context& context, Weights weights) : Session(recipe, task_of(recipe), context, weights) {}

Session::Session(const Recipe& recipe, std::unique_ptr<Task> task, Context& context, Weights weights)
    : recipe_(recipe), context_(context), task_(std::move(task)), config_(model_of(recipe, task_->shape())), tape_(context) {
  prepare(weights);
}

Session::Session(const Recipe& recipe, const ModelConfig& model, Context& context, Weights weights)
    : recipe_(recipe), context_(context), config_(model), tape_(context) {
  prepare(weights);
}

const Task& Session::task() const {
  if (task_) return *task_;
  std::unique_ptr<Task> task = task_of(recipe_);
  require_fit(config_, task->shape(), recipe_.task);
  task_ = std::move(task);
  return *task_;
}

void Session::use_task_of(const Recipe& recipe) {
  recipe_.task = recipe.task;
  recipe_.task_settings = recipe.task_settings;
  recipe_.lines = recipe.lines;
  task_.reset();
  (void)task();
}

void Session::prepare(Weights weights) {
  const TrainRecipe& t = recipe_.train;
  schedule_ = schedule_of(recipe_);
  model_ = std::make_unique<Model<float>>(config_, parameters_);
  if (weights == Weights::drawn) initialise(parameters_, t.seed);
  if (weights == Weights::zero)
    for (const Parameter<float>& p : parameters_.all()) std::ranges::fill(p.values(), 0.0F);
  freeze();
  optimiser_options_ = {.kind = optimiser_named(t.optimiser),
                        .beta1 = t.beta1,
                        .beta2 = t.beta2,
                        .eps = t.eps,
                        .momentum = t.momentum,
                        .weight_decay = t.weight_decay,
                        .clip = t.clip};
  check(optimiser_options_);
}

void Session::freeze() {
  const std::string& names = recipe_.train.freeze;
  if (names.empty()) return;
  const std::vector<std::string> parts = split(names, ',');
  const auto has = [](const std::string& part) {
    return [&part](const auto& p) { return p.name().find(part) != p.name().npos; };
  };
  for (const std::string& part : parts)
    if (part.empty() || std::ranges::none_of(parameters_.all(), has(part)))
      fail_in_recipe(recipe_, {"train.freeze"},
                     "expected parts of the names of parameters for train.freeze, got " + part + ", which is in none of them");
  parameters_.freeze([&](const std::string& name) {
    return std::ranges::any_of(parts, [&](const std::string& part) { return name.find(part) != name.npos; });
  });
  if (parameters_.trained_size() == 0)
    fail_in_recipe(recipe_, {"train.freeze"}, "expected something to train, got all of it frozen");
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
          // Tables have no padding.
          .lengths = batch.known.empty() ? std::span<const Index>(batch.lengths) : std::span<const Index>(),
          .known = batch.known};
}

void Session::fail_not_finite(const char* what, const std::string& where) {
  parameters_.zero_gradients();
  throw NotFinite("step " + std::to_string(done_ + 1) + ": the " + what + " is not finite" +
                  (where.empty() ? "" : "; " + where + " first produced such a value"));
}

double Session::backward(Pass pass, double labels) {
  const ModelInput whole = input_of(batch_);
  const Index parts = recipe_.train.accumulate;
  double loss = 0;
  pass.count = labels;
  for (Index i = 0; i < parts; ++i) {
    pass.first = i * whole.B / parts;
    const ModelInput part = part_of(whole, pass.first, (i + 1) * whole.B / parts - pass.first);
    const ModelResult result = model_->loss(tape_, part, pass);
    if (!std::isfinite(result.loss)) fail_not_finite("loss", model_->first_not_finite(tape_, part, pass));
    tape_.backward();
    tape_.clear();
    loss += result.loss * (double(result.count) / labels);
  }
  return loss;
}

StepReport Session::step() {
  const Stopwatch watch;
  const Index size = recipe_.train.batch;
  task().fill(Split::train, std::uint64_t(done_ * size), size, batch_);
  StepReport report{.step = done_ + 1, .tokens = batch_.B * batch_.T, .data_seconds = watch.seconds()};
  report.lr = recipe_.train.lr * factor(schedule_, done_);
  double labels = double(count_of(config_, input_of(batch_)));
  if (reduction_.sum) labels = reduction_.sum(labels);
  Optimiser<float>& steps = optimiser();
  report.loss = backward(pass_of(done_), std::max(labels, 1.0));
  if (reduction_.sum) report.loss = reduction_.sum(report.loss);
  if (reduction_.sum_array)
    for (const std::span<float> group : parameters_.gradient_groups()) reduction_.sum_array(group);
  report.gradient_norm = steps.step(report.lr, context_);
  if (!std::isfinite(report.gradient_norm)) fail_not_finite("gradient", model_->first_gradient_not_finite(parameters_));
  parameters_.zero_gradients();
  ++done_;
  report.seconds = watch.seconds();
  return report;
}

EvalReport Session::evaluate(const EvalOptions& options) {
  require(options.examples > 0, "evaluate", "expected at least one example, got ", options.examples);
  const Index size = options.batch > 0 ? options.batch : recipe_.train.batch;
  const std::uint64_t all = task().size(options.split);
  const Index examples = all > 0 ? std::min(options.examples, Index(all) - options.first) : options.examples;
  require(examples > 0, "evaluate", "expected fewer than ", all, " examples in front, got ", options.first);
  Tape<float> tape(context_, Record::no);
  Score score;
  double loss = 0, labels = 0;
  Index shortest = task_->shape().length, longest = 0;
  for (Index first = 0; first < examples; first += size) {
    task_->fill(options.split, std::uint64_t(options.first + first), std::min(size, examples - first), batch_);
    const auto [least, most] = std::ranges::minmax(batch_.lengths);
    shortest = std::min(shortest, least);
    longest = std::max(longest, most);
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
  return {.loss = loss / labels,
          .value = score.value(metric),
          .metric = metric,
          .examples = examples,
          .shortest = shortest,
          .longest = longest,
          .split = options.split};
}

Checkpoint Session::checkpoint(const std::string& extra_json) {
  // No checkpoint is better than one that nobody can go on from.
  for (const Parameter<float>& p : parameters_.all())
    if (!std::ranges::all_of(p.values(), [](float x) { return std::isfinite(x); }))
      throw NotFinite("step " + std::to_string(done_) + ": the weights are not finite; " + p.name() + " is the first of them");
  Json state = Json::object();
  if (task_ && task_->data_hash() != 0) state.set("data", std::to_string(task_->data_hash()));
  state.set("extra", Json::parse(extra_json, "extra"));
  state.set("seed", recipe_.train.seed);
  state.set("step", done_);
  state.set("version", kStateVersion);
  std::string tokenizer = tokenizer_;
  if (config_.vocabulary > 0 && task_) tokenizer = tokenizer_of(*task_)->to_json();
  return {.step = done_,
          .model = {.config = to_json(config_), .weights = parameters_.tensors(), .tokenizer = std::move(tokenizer)},
          .optimiser = optimiser().state(),
          .state = state.dump(1) + "\n"};
}

void Session::resume(const Checkpoint& checkpoint) {
  const Index step = state_of(checkpoint).step;
  const std::string file = checkpoint.file("config.json");
  expect_same(file, model_config(checkpoint.model.config, file), config_);
  resume_weights(checkpoint);
  read_from(checkpoint.file("optimizer.safetensors"), [&] { optimiser().load(checkpoint.optimiser); });
  done_ = step;
}

bool Session::has_data_of(const Checkpoint& checkpoint) const {
  const std::string data = state_of(checkpoint).data;
  return data.empty() || data == std::to_string(task().data_hash());
}

void Session::resume_weights(const Checkpoint& checkpoint) {
  read_from(checkpoint.file("model.safetensors"), [&] { parameters_.assign(checkpoint.model.weights); });
  tokenizer_ = checkpoint.model.tokenizer;
  done_ = checkpoint.step;
}

namespace {
std::unique_ptr<Session> opened(const Recipe& recipe, const Checkpoint& checkpoint, Context& context) {
  (void)state_of(checkpoint);
  auto session =
      std::make_unique<Session>(recipe, model_config(checkpoint.model.config, checkpoint.file("config.json")), context);
  session->resume_weights(checkpoint);
  return session;
}
}  // namespace

std::unique_ptr<Session> open_run(const std::string& path, Context& context) {
  const RunPath at = run_path(path);
  const RunFolder folder = RunFolder::open(at.run);
  return opened(read_recipe(folder.recipe_path()), folder.load_model(at.step), context);
}

std::unique_ptr<Session> open_model_on(const std::string& path, const std::string& task, Context& context) {
  const auto loaded = load_model(path);
  Recipe recipe;
  recipe.task = task;
  recipe.model.from = whole_path(path);
  use_own_tokenizer(recipe);
  auto session = std::make_unique<Session>(recipe, loaded->model.config(), context);
  session->parameters().assign(loaded->parameters.tensors());
  return session;
}

std::unique_ptr<Session> open_run_on(const std::string& path, const std::string& task, const Overrides& options,
                                     Context& context) {
  // Not a mistake of the run's recipe, which would be blamed for it.
  if (!task.empty()) (void)find_task(task);
  auto session = open_run(path, context);
  session->use_task_of(with_task(session->recipe(), task.empty() ? session->recipe().task : task, options));
  return session;
}

}  // namespace isomer
