#include "isomer/study/pretrained.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "isomer/base/error.h"
#include "isomer/io/files.h"
#include "isomer/io/safetensors.h"
#include "isomer/models/not_finite.h"
#include "isomer/models/pretrained.h"
#include "isomer/nn/init.h"
#include "isomer/train/start.h"
#include "isomer/train/transfer.h"

namespace isomer::study {

namespace {
std::string cache_folder() {
  // Read once, before any cell begins.
  const char *const own = std::getenv("XDG_CACHE_HOME"), *const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
  const std::string base = own != nullptr && *own != '\0' ? own : std::string(home != nullptr ? home : "") + "/.cache";
  return base + "/isomer/models/";
}

/// What does not depend on the mixer is scored once a process.
double scored_once(const std::string& name, const std::function<double()>& score) {
  static std::mutex mutex;
  static std::map<std::string, double> known;
  const std::scoped_lock lock(mutex);
  const auto found = known.find(name);
  return found != known.end() ? found->second : known[name] = score();
}

/// `stepped` is asked after every step; false: stop.
void learn(const Trial& trial, Session& to, const TrainRecipe& train, const std::function<bool(Index, double)>& stepped,
           Context& context) {
  if (trial.learns == Trial::From::teacher) {
    (void)distil(*trial.teacher, to,
                 {.steps = train.steps, .lr = train.lr, .looks = 1, .examples = train.batch, .progress = stepped}, context);
    return;
  }
  for (Index step = 1; step <= train.steps; ++step)
    if (!stepped(step, to.step().loss)) return;
}

/// The recipe's task and training on the model of a folder.
Recipe recipe_on(const Recipe& recipe, const std::string& folder, const Overrides& task) {
  Recipe own = recipe;
  own.model = {};
  own.model.from = folder;
  own.model.layers.clear();
  own.mixers.clear();
  return with_task(own, own.task, task);
}

/// Settings as text that is the same wherever the cache is.
std::string text_of_settings(const Recipe& recipe) {
  std::string text = to_toml(resolved(recipe));
  const std::string cache = cache_folder();
  for (std::size_t at = text.find(cache); at != std::string::npos; at = text.find(cache, at)) text.erase(at, cache.size());
  return text;
}

double finite(double score) {
  if (!std::isfinite(score)) throw NotFinite("the score is not finite");
  return score;
}
}  // namespace

std::string model_folder(const std::string& name) {
  const std::string folder = cache_folder() + name;
  if (!is_there(folder)) throw Error("expected " + folder + ", got no such folder: tools/models " + name + " fetches it");
  return folder;
}

std::string path_of(const Keepsake& what, Isa isa) {
  return what.folder + "/study-" + what.name + "-" + key_of(what.made_of, isa) + what.extension;
}

std::string made_once(const Keepsake& what, Isa isa, const std::function<void(const std::string& path)>& make) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  std::string path = path_of(what, isa);
  if (!is_there(path)) make(path);
  return path;
}

std::unique_ptr<Session> pretrained(const Recipe& recipe, const std::string& folder, const Overrides& task, Head head,
                                    Context& context, const std::string& weights) {
  const Recipe own = recipe_on(recipe, folder, task);
  auto session = head == Head::own ? std::make_unique<Session>(own, describe_model(folder), context, Weights::zero)
                                   : std::make_unique<Session>(own, context, Weights::zero);
  if (!weights.empty()) {
    session->parameters().assign(read_safetensors(weights));
    return session;
  }
  std::set<std::string> taken;
  for (const StartedWeight& weight : start_from(session->parameters(), folder).weights)
    if (weight.fate == StartedWeight::Fate::taken) taken.insert(weight.name);
  initialise(session->parameters(), own.train.seed, [&](const std::string& name) { return !taken.contains(name); });
  return session;
}

std::unique_ptr<Session> tuned_once(const Recipe& recipe, const std::string& folder, const Overrides& task,
                                    const std::string& name, const Tuning& tuning, Context& context,
                                    const CellProgress& progress) {
  Recipe own = recipe;
  own.train.seed = 1;
  own.train.steps = tuning.steps, own.train.warmup = tuning.steps / 10, own.train.lr = tuning.rate;
  own.train.freeze = tuning.freeze;
  Overrides with = task;
  with.emplace_back("task.seed=1");
  const Keepsake weights{
      .folder = folder, .name = name, .extension = ".safetensors", .made_of = text_of_settings(recipe_on(own, folder, with))};
  const std::string kept = made_once(weights, context.isa(), [&](const std::string& path) {
    const auto teacher = pretrained(own, folder, with, Head::of_task, context);
    for (Index step = 0; step < tuning.steps; ++step) {
      (void)teacher->step();
      if (progress && !progress(0)) throw Error("stopped");
    }
    write_safetensors(path, teacher->parameters().tensors());
  });
  return pretrained(recipe, folder, task, Head::of_task, context, kept);
}

ConvertedModel convert_as(const Recipe& recipe, Session& from, Context& context) {
  std::vector<std::string> names = layers_of(recipe.model);
  if (names.size() == 1) names.assign(from.config().layers.size(), names[0]);
  require(names.size() == from.config().layers.size(), "convert", "expected ", from.config().layers.size(), " layers, got ",
          names.size());
  std::set<std::string> mixers(names.begin(), names.end());
  mixers.erase("softmax");
  ConvertedModel to;
  std::vector<Index> all;
  for (const std::string& mixer : mixers) {
    ConversionRequest request{.mixer = mixer};
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == mixer) request.layers.push_back(Index(i));
    const auto options = recipe.mixers.find(mixer);
    if (options != recipe.mixers.end())
      for (const auto& [key, value] : options->second) request.overrides.push_back("mixer." + mixer + "." + key + "=" + value);
    const Conversion plan = plan_conversion(to.session ? *to.session : from, request);
    all.insert(all.end(), plan.layers.begin(), plan.layers.end());
    to.session = std::make_unique<Session>(plan.recipe, plan.model, context, Weights::zero);
  }
  require(to.session != nullptr, "convert", "expected a mixer beside softmax, got none");
  std::ranges::sort(all);
  to.fates = take_weights(from, *to.session, all);
  std::set<std::string> fresh;
  for (const ConvertedParameter& p : to.fates)
    if (p.fate == ConvertedParameter::Fate::fresh) fresh.insert(p.name);
  initialise(to.session->parameters(), to.session->recipe().train.seed,
             [&](const std::string& name) { return fresh.contains(name); });
  return to;
}

void transfer_new(Session& from, ConvertedModel& to, Index steps, Context& context) {
  std::set<Index> learning;
  for (const ConvertedParameter& p : to.fates)
    if (p.layer >= 0 && p.fate == ConvertedParameter::Fate::fresh && to.session->parameters().find(p.name).trained())
      learning.insert(p.layer);
  std::vector<ConvertedParameter> fates;
  std::ranges::copy_if(to.fates, std::back_inserter(fates), [&](const auto& p) { return learning.contains(p.layer); });
  if (!fates.empty()) (void)transfer(from, *to.session, fates, {.steps = steps}, context);
}

CellResult run_trial(const Trial& trial, const Recipe& recipe, Context& context, const CellProgress& progress) {
  ConvertedModel to = convert_as(recipe, *trial.teacher, context);
  CellResult result{.lower_is_better = trial.lower_is_better, .parameters = to.session->parameters().trained_size()};
  const TrainRecipe& train = recipe.train;
  const auto score = [&](Trial::Part part) { return finite(trial.score(*to.session, part)); };
  for (const auto& [name, part] : {std::pair{"softmax", Trial::Part::test}, {"softmax, looked at", Trial::Part::look}})
    result.numbers[name] = scored_once(trial.name + " " + name, [&, part = part] { return trial.score(*trial.teacher, part); });
  bool stopped = false;
  try {
    result.numbers["at once"] = score(Trial::Part::look);
    transfer_new(*trial.teacher, to, trial.transfer, context);
    result.curve.push_back({0, 0, score(Trial::Part::look)});
    const Index every = std::max<Index>(1, train.steps / trial.looks);
    const auto stepped = [&](Index step, double loss) {
      stopped = progress && !progress(double(step) / double(train.steps));
      if (!stopped && step % every == 0) result.curve.push_back({step, loss, score(Trial::Part::look)});
      return !stopped;
    };
    learn(trial, *to.session, train, stepped, context);
    if (stopped) throw Error("stopped");
    result.validation = score(Trial::Part::validation);
    result.value = score(Trial::Part::test);
    result.loss = result.curve.back().loss;
    for (const auto& [name, measure] : trial.more) {
      result.numbers[name] = measure(*to.session);
      result.numbers["softmax, " + name] =
          scored_once(trial.name + " " + name, [&, &measure = measure] { return measure(*trial.teacher); });
    }
    result.improving = still_improving(result.curve, trial.lower_is_better);
  } catch (const NotFinite&) {
    result.diverged = true;
    result.value = result.validation = trial.lower_is_better ? std::numeric_limits<double>::infinity() : 0;
    result.loss = std::numeric_limits<double>::infinity();
  }
  result.steps = train.steps;
  return result;
}

}  // namespace isomer::study
