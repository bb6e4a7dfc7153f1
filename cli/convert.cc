// isomer convert: a trained model with other mixers, as a run that can be trained on.
#include <algorithm>
#include <map>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/base/settings.h"
#include "isomer/models/pretrained.h"
#include "isomer/train/distil.h"
#include "isomer/train/start.h"
#include "isomer/train/trainer.h"
#include "isomer/train/transfer.h"

namespace isomer::cli {

namespace {
using Fate = ConvertedParameter::Fate;
constexpr Index kTransferSteps = 300, kTuneSteps = 300;
// A model that is there already takes less than one that starts.
constexpr const char* kTuneRate = "0.001";
constexpr std::string_view kSteps = "train.steps=";
// A loss that is so much higher than before, in parts of it and in nats, is no rounding of a fine-tuning that may go on.
constexpr double kLostShare = 0.1, kLostNats = 0.05;

struct Request {
  std::string model, recipe, task, mixer, out, layers;
  std::vector<std::string> settings;
  std::optional<Index> transfer, distil, tune;  // not given: as much as it takes
  Index examples = 1024;
  bool json = false;
  int threads = 0;
};

Index number_of(std::string_view text, const std::string& all) {
  Index number = 0;
  // More layers than any model has.
  if (!parse_number(text, number) || number < 0 || number > 100000)
    throw Error("--layers: expected numbers and ranges of layers (0,2 or 1-3), got " + all);
  return number;
}

/// "0,2", "1-3", "0,4-6"
std::vector<Index> layers_of(const std::string& text) {
  std::vector<Index> layers;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const Index first = number_of(part.substr(0, dash), text);
    const Index last = dash == std::string::npos ? first : number_of(part.substr(dash + 1), text);
    if (last < first) throw Error("--layers: expected ranges that go up (1-3), got " + text);
    for (Index layer = first; layer <= last; ++layer) layers.push_back(layer);
  }
  return layers;
}

std::string start_of(const graph::Init& init) {
  using Kind = graph::Init::Kind;
  switch (init.kind) {
    case Kind::constant: return text_of(init.a);
    case Kind::normal: return "normal, deviation " + text_of(init.b);
    case Kind::uniform: return "uniform from " + text_of(init.a) + " to " + text_of(init.b);
    case Kind::identity: return "the unit matrix";
    case Kind::near_identity: return "the unit matrix times " + text_of(init.a) + ", plus normal, deviation " + text_of(init.b);
    case Kind::orthogonal: return "orthogonal directions";
    default: return "as the preset says";
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

std::string shape_text(const std::vector<Index>& shape) {
  std::string text;
  for (const Index n : shape) text += (text.empty() ? "" : " x ") + std::to_string(n);
  return text;
}

/// The same of several layers in one row.
void print_parameters(const std::vector<ConvertedParameter>& fates) {
  std::map<std::vector<std::string>, std::string> layers;
  std::vector<std::vector<std::string>> order;
  for (const ConvertedParameter& p : fates) {
    const std::string prefix = p.layer < 0 ? "" : "layers." + std::to_string(p.layer) + ".mixer.";
    const std::vector<std::string> row{p.name.substr(prefix.size()), shape_text(p.shape), std::string(name_of(p.fate)),
                                       p.fate == Fate::fresh ? start_of(p.init) : ""};
    std::string& of = layers[row];
    if (of.empty()) order.push_back(row);
    of += (of.empty() ? "" : ",") + (p.layer < 0 ? "shared" : std::to_string(p.layer));
  }
  Table table({"parameter", "shape", "", "starts with", "layers"});
  for (std::vector<std::string>& row : order) {
    const std::string of = layers[row];
    row.push_back(of);
    table.add(row);
  }
  table.print();
}

void print_transfer(const std::vector<TransferReport>& reports, Index steps) {
  for (const TransferReport& r : reports)
    std::cout << "transfer of layer " << r.layer << ", "
              << (r.weights ? "divergence of attention weights" : "squared error of outputs") << ": " << text_of(r.before)
              << " before, " << text_of(r.after) << " after " << steps << " steps\n";
}

/// How the model did at some point, always on the same test examples.
struct Stage {
  std::string name;
  Index steps = 0;  // that led there
  std::string metric;
  double value = 0, loss = 0;
  Index examples = 0;
};

void print_stages(const std::vector<Stage>& stages) {
  if (stages.empty()) return;
  Table table({"", "steps", stages[0].metric, "loss"});
  for (const Stage& stage : stages)
    table.add({stage.name, std::to_string(stage.steps), text_of(stage.value), text_of(stage.loss)});
  table.print();
  std::cout << "on the same " << stages[0].examples << " examples of the test split\n";
}

/// Says so where the last stage is far from the first.
void warn_of_loss(const std::vector<Stage>& stages) {
  const double before = stages.front().loss, lost = stages.back().loss - before;
  if (lost <= std::max(kLostShare * before, kLostNats)) return;
  std::cerr << "isomer convert: warning: the model has not recovered, its loss rose from " << text_of(before) << " to "
            << text_of(before + lost)
            << ": more steps (--tune), another rate (--set train.lr=…) or a mixer that is nearer to the old one may help\n";
}

Json rows_of(const std::vector<ConvertedParameter>& fates, const std::vector<TransferReport>& reports,
             const std::vector<Stage>& stages) {
  Json rows = Json::array();
  for (const ConvertedParameter& p : fates) {
    Json row = Json::object(
        {{"layer", p.layer < 0 ? Json() : Json(p.layer)}, {"parameter", p.name}, {"shape", p.shape}, {"fate", name_of(p.fate)}});
    if (p.fate == Fate::fresh) row.set("start", start_of(p.init));
    rows.push(row);
  }
  for (const TransferReport& r : reports)
    rows.push(Json::object(
        {{"layer", r.layer}, {"transfer", r.weights ? "weights" : "outputs"}, {"before", r.before}, {"after", r.after}}));
  for (const Stage& stage : stages)
    rows.push(Json::object({{"stage", stage.name},
                            {"steps", stage.steps},
                            {"metric", stage.metric},
                            {"value", stage.value},
                            {"loss", stage.loss},
                            {"examples", stage.examples}}));
  return rows;
}

/// A model that belongs to no run, on the task that was asked for.
std::unique_ptr<Session> opened_model(const Request& request, Overrides settings, Context& context) {
  if (request.recipe.empty() == request.task.empty())
    throw Error(request.model + ": a model of no run has no task of its own, expected --recipe FILE or --task NAME");
  settings.push_back("model.from=" + request.model);
  Recipe recipe = request.recipe.empty() ? parse_recipe(parse_toml("[task]\nname = \"" + request.task + "\"", "--task"), settings)
                                         : read_recipe(request.recipe, settings);
  auto from = std::make_unique<Session>(recipe, context);
  const StartReport report = start_from(from->parameters(), request.model);
  if (report.count(StartedWeight::Fate::taken) < Index(from->parameters().all().size()))
    throw Error(request.model + ": expected a model with a head for the task " + recipe.task +
                ", got none: isomer train RECIPE --from " + request.model + " --out RUN gives it one, then convert RUN");
  return from;
}

/// The model that is converted. Of a run, with the options of its task that were set: its data may have moved.
std::unique_ptr<Session> opened(const Request& request, Context& context) {
  Overrides task, settings;
  for (const std::string& text : request.settings) {
    if (text.starts_with("task.")) task.push_back(text);
    if (text.starts_with("task.") || text.starts_with("train.")) settings.push_back(text);
  }
  if (is_bare_model(request.model)) return opened_model(request, settings, context);
  if (!request.recipe.empty() || !request.task.empty())
    throw Error(request.model + ": expected neither --recipe nor --task for a run, which has its own");
  auto from = open_run(request.model, context);
  if (!task.empty()) from->use_task_of(with_task(from->recipe(), from->recipe().task, task));
  return from;
}

/// A conversion under way.
class Work {
 public:
  explicit Work(const Request& request) : request_(request), context_(request.threads), from_(opened(request, context_)) {
    plan_ = plan_conversion(*from_,
                            {.mixer = request.mixer, .layers = layers_of(request.layers), .overrides = overrides_of(request)});
    require_data();
  }

  int run() {
    Session to(plan_.recipe, plan_.model, context_);
    score("before", 0, *from_);
    fates_ = take_weights(*from_, to, plan_.layers);
    score("new mixers", 0, to);
    // Without a wish, only where there is something to learn.
    const Index steps = request_.transfer.value_or(can_transfer(to, fates_) ? kTransferSteps : 0);
    if (has_data_ && steps > 0) {
      learn(to, steps);
      score("after transfer", steps, to);
    }
    if (has_data_ && distil_steps() > 0) {
      listen(to);
      score("after distillation", distil_steps(), to);
    }
    const bool stopped = !written(to);
    if (request_.json) {
      print_json(context_, rows_of(fates_, reports_, stages_));
    } else {
      print_parameters(fates_);
      std::cout << "everything outside of these mixers is kept\n";
      if (!plan_.dropped.empty()) std::cout << "options that the new mixer does not have: " << joined(plan_.dropped) << "\n";
      print_transfer(reports_, steps);
      print_stages(stages_);
      if (!has_data_) std::cout << "not scored: " << problem_ << "\n";
      if (!tuned_) std::cout << "fine-tune with: " << resume_command(request_.out) << "\n";
    }
    if (tuned_) warn_of_loss(stages_);
    return stopped ? kFailed : kDone;
  }

 private:
  /// Fine-tuning is no first training: it has a length and a learning rate of its own.
  static Overrides overrides_of(const Request& request) {
    const bool given = request.tune.value_or(0) > 0;
    Index steps = given ? *request.tune : kTuneSteps;
    for (const std::string& text : request.settings) {
      if (!text.starts_with(kSteps)) continue;
      if (given) throw Error("--tune: expected the steps once, got --set train.steps too");
      (void)parse_number(std::string_view(text).substr(kSteps.size()), steps);  // what is no number is refused as the others are
    }
    Overrides all{std::string(kSteps) + std::to_string(steps),
                  "train.warmup=" + std::to_string(std::max<Index>(steps, 0) / 10),
                  std::string("train.lr=") + kTuneRate,
                  "train.schedule=cosine",
                  "train.final_lr=0.1",
                  "train.log_every=0",
                  "train.eval_every=0",
                  "train.save_every=0"};
    all.insert(all.end(), request.settings.begin(), request.settings.end());
    return all;
  }

  /// What embeds has no labels to be tuned on: it learns from the old model alone.
  [[nodiscard]] bool embeds() const { return from_->config().kind == ModelKind::embedding; }
  [[nodiscard]] bool tunes() const { return request_.tune.value_or(embeds() ? 0 : 1) > 0; }
  [[nodiscard]] Index distil_steps() const { return request_.distil.value_or(embeds() ? kTuneSteps : 0); }

  /// Weights can be converted without the data of their task, nothing more.
  void require_data() {
    try {
      (void)from_->task();
      has_data_ = true;
    } catch (const Error& problem) {
      problem_ = problem.what();
    }
    if (embeds() && request_.tune.value_or(0) > 0)
      throw Error("--tune: " + request_.model + " gives vectors and has no labels to be tuned on, expected --distil");
    if (!has_data_ && (tunes() || distil_steps() > 0 || request_.transfer.value_or(1) > 0))
      throw Error(problem_ +
                  "; transfer and fine-tuning need it: --set task.path=PATH says where it is, --transfer 0 --tune 0 converts the "
                  "weights alone");
  }

  void score(const std::string& name, Index steps, Session& session) {
    if (!has_data_) return;
    if (embeds()) {
      const Index examples = session.task().at_most(Split::test, request_.examples);
      const double squares = distance(*from_, session, examples, context_);
      return stages_.push_back({name, steps, "cosine to the old", 1 - squares / 2, squares, examples});
    }
    const EvalReport eval = session.evaluate({.examples = request_.examples});
    stages_.push_back({name, steps, std::string(name_of(eval.metric)), eval.value, eval.loss, eval.examples});
  }

  void listen(Session& to) {
    const Progress progress;
    DistilOptions options{.steps = distil_steps(), .lr = to.recipe().train.lr, .looks = 1};
    options.progress = [&](Index step, double loss) {
      progress.show("distillation " + std::to_string(step) + "/" + std::to_string(options.steps) + "  loss " + text_of(loss));
      return true;
    };
    (void)distil(*from_, to, options, context_);
  }

  void learn(Session& to, Index steps) {
    const Progress progress;
    TransferOptions options{.steps = steps};
    options.progress = [&](Index step, double loss) {
      progress.show("transfer " + std::to_string(step) + "/" + std::to_string(steps) + "  loss " + text_of(loss));
    };
    reports_ = transfer(*from_, to, fates_, options, context_);
  }

  /// Writes the run and fine-tunes it, unless that is not wanted. False: it was stopped.
  bool written(Session& to) {
    try {
      const RunFolder folder = start_run(request_.out, to);
      if (!tunes()) return true;
      const FileLock claim = folder.claim();
      const Progress progress;
      const TrainEvents events{.step = [&](const StepReport& step, double) {
        progress.show("fine-tuning " + std::to_string(step.step) + "/" + std::to_string(plan_.recipe.train.steps) + "  loss " +
                      text_of(step.loss));
      }};
      const TrainOutcome outcome = train(to, folder, events, watch_for_interrupt());
      tuned_ = outcome.end != TrainOutcome::End::stopped;
      score("after fine-tuning", outcome.steps, to);
      return tuned_;
    } catch (const Error& problem) {
      throw RunFailed(problem.what());
    }
  }

  const Request& request_;
  Context context_;
  std::unique_ptr<Session> from_;
  Conversion plan_;
  std::vector<ConvertedParameter> fates_;
  std::vector<TransferReport> reports_;
  std::vector<Stage> stages_;
  bool has_data_ = false, tuned_ = false;
  std::string problem_;  // why there is no data
};

int convert_request(const Request& request) {
  RunFolder::expect_none(request.out);
  return Work(request).run();
}
}  // namespace

Command convert_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("model", request->model, "A run, or a pre-trained model: a Hugging Face folder or a GGUF file").required();
  options.add("--mixer", request->mixer, "The preset that takes the place of the old mixers").required();
  options.add("--out", request->out, "Folder of the new run").required().not_empty();
  options.add("--layers", request->layers, "Which layers, e.g. 0,2 or 1-3 [all]");
  options.add("--recipe", request->recipe, "Task and training of a model of no run, without a [model]").value("FILE");
  options.add("--task", request->task, "The same by the name of a task, its options by --set task.…").value("NAME");
  options.add("--transfer", request->transfer, "Steps in which what is new learns to do what the old layers did [300, if it can]")
      .value("N")
      .at_least(0);
  options
      .add("--distil", request->distil,
           "Steps in which the whole model learns to say what the old one says, without labels [0; 300 where there are none]")
      .value("N")
      .at_least(0);
  options.add("--tune", request->tune, "Steps of fine-tuning the whole model after that (train.steps); 0: not now [300]")
      .value("N")
      .at_least(0);
  options.set(request->settings, "A key of the new recipe, e.g. mixer.luna.features=16, train.lr=3e-4 or task.path=FILE");
  options.add("--examples", request->examples, "Test examples that it is scored on [1024]").value("N").at_least(1);
  options.flag("--json", request->json, "One JSON object instead of a table");
  options.threads(request->threads);
  options.footer(
      "Example:\n  isomer convert runs/text --mixer hedgehog --out runs/hedgehog\n"
      "  isomer convert runs/text --mixer gla --layers 1-3 --tune 1000 --set train.lr=3e-4 --out runs/hybrid\n"
      "  isomer convert models/stories15m --mixer hedgehog --task text --set task.path=stories.txt --distil 300 --out "
      "runs/linear");
  return [request] { return convert_request(*request); };
}

}  // namespace isomer::cli
