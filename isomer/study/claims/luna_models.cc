// LUNA in models: in place of softmax in trained ones, and trained from the start on small tasks like those of the Long Range
// Arena. `tools/setup images` and `tools/setup text` install the data.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "isomer/study/claims/sources.h"
#include "isomer/study/trained.h"
#include "isomer/train/convert.h"

namespace isomer::study {

namespace {

// ---------------------------------------------------------------------------------------------------------------------------
// Conversion: softmax gives way to another mixer in every layer, q, k, v and o stay, and the whole is fine-tuned on the task.

struct Successor {
  const char* name;
  const char* mixer;
  Overrides options = {};
};
const std::vector<Successor>& feature_maps() {
  static const std::vector<Successor> all{{"LUNA", "luna"},
                                          {"Hedgehog", "hedgehog"},
                                          {"T2R", "t2r"},
                                          {"elu + 1", "linear-elu"},
                                          {"softmax, fine-tuned as long", "softmax"}};
  return all;
}

/// The metric after equal fine-tuning with the learning rate that is best on validation examples, measured on others.
double metric_of(Session& from, const Successor& to, const std::vector<double>& rates, Index steps, Context& context) {
  const bool lower = lower_is_better(from.task().shape().metric);
  const Index examples = from.recipe().train.eval_examples;
  double best = -std::numeric_limits<double>::infinity(), reported = std::nan("");
  for (const double rate : rates) try {
      Overrides all = to.options;
      all.push_back("train.lr=" + std::to_string(rate));
      all.push_back("train.steps=" + std::to_string(steps));
      all.push_back("train.warmup=" + std::to_string(steps / 10));
      const Conversion plan = plan_conversion(from, {.mixer = to.mixer, .overrides = all});
      Session next(plan.recipe, context);
      (void)take_weights(from, next, plan.layers);
      for (Index step = 0; step < steps; ++step) (void)next.step();
      const double validation = next.evaluate({.examples = examples}).value, score = lower ? -validation : validation;
      if (score <= best) continue;
      best = score;
      reported = next.evaluate({.examples = 2 * examples, .first = examples}).value;
    } catch (const NotFinite&) {
      continue;  // a rate that is too large
    }
  return reported;
}

Numbers all_converted(Session& from, const std::vector<double>& rates, Index steps, Context& context) {
  Numbers found;
  for (const Successor& one : feature_maps()) found[one.name] = metric_of(from, one, rates, steps, context);
  return found;
}
const Probe kConvert{.name = "conversion, 300 steps, rates 1e-3, 3e-3, 1e-2", .measure = [](Session& from, Context& context) {
                       return all_converted(from, {1e-3, 3e-3, 1e-2}, 300, context);
                     }};
const Probe kConvertQuickly{.name = "conversion, 60 steps, rate 3e-3",
                            .measure = [](Session& from, Context& context) { return all_converted(from, {3e-3}, 60, context); }};

/// The metric of every successor, and what is recovered of the model's.
void read_conversions(const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
  for (const CellResult* run : chosen.at(0).runs)
    for (const Successor& one : feature_maps()) {
      const double value = run->diverged ? std::nan("") : run->numbers.at(one.name);
      found.add(one.name, value);
      found.add(std::string("recovered by ") + one.name, run->lower_is_better ? run->value / value : value / run->value);
    }
}

/// A claim whose quick and full studies fine-tune for different times.
Claim conversion(Claim claim, const Comparison& comparison) {
  const auto with = [comparison](const Budget& budget) {
    Comparison own = comparison;
    own.probe = budget.pick(&kConvertQuickly, &kConvert);
    return own;
  };
  claim.cells = [with](const Budget& budget, const Cells& done) { return with(budget).cells(budget, done); };
  claim.read = [with](const Budget& budget, const Cells& cells, Evidence& found) {
    const Comparison own = with(budget);
    own.read(budget, cells, found);
    read_conversions(own.chosen(budget, cells), found);
  };
  return claim;
}

const std::string kFineTuned =
    "each layer's softmax replaced, q, k, v and o kept, then 300 steps of fine-tuning on the task with the best of three "
    "learning "
    "rates";

constexpr const char* kPictures = R"(
[model]
width = 32
layers = ["softmax*2"]
positions = true
mlp = "gelu"
mlp_factor = 2
deviation = 0.1
[mixer.softmax]
heads = 2
causal = false
position = "none"
[task]
name = "images"
[train]
steps = 1000
batch = 32
warmup = 40
eval_examples = 1000
eval_every = 250
)";

Claim pictures() {
  return conversion(
      {.id = "luna.convert-pictures",
       .statement =
           "In place of softmax in a trained vision model LUNA recovers at least as much as Hedgehog after equal fine-tuning, "
           "Hedgehog more than T2R, and T2R more than elu + 1.",
       .quantity =
           "share of 2,000 test pictures of Fashion-MNIST that are recognised: " + kFineTuned + "; quick: 60 steps at 3e-3",
       .rule = all_of({ordering({"LUNA", "Hedgehog"}, 0.005), ordering({"Hedgehog", "T2R", "elu + 1"}, 0)}),
       .published = {{.name = "softmax, ViT-B/16 on ImageNet", .value = 0.803, .where = "table of ImageNet"},
                     {.name = "LUNA", .value = 0.805, .where = "table of ImageNet"},
                     {.name = "Hedgehog", .value = 0.795, .where = "table of ImageNet"},
                     {.name = "T2R", .value = 0.77, .where = "table of ImageNet (T2R-HH)"}},
       .figure = {.kind = "bars", .y = "accuracy", .caption = "What each successor of softmax recovers after equal fine-tuning."},
       .units = {{"recovered by ", "of softmax"}},
       .otherwise = "size: all but elu + 1 recover 99 %, and differ by less than a point"},
      {.recipe = kPictures,
       .quick = {"train.steps=200"},
       .models = {{.name = "softmax", .rate = 1e-2}},
       .judged = Judged::after_equal_steps,
       .search = false});
}

constexpr const char* kText = R"(
[model]
width = 48
layers = ["softmax*2"]
positions = true
mlp = "gelu"
mlp_factor = 2
deviation = 0.1
[mixer.softmax]
heads = 3
position = "none"
[task]
name = "text"
length = 64
[train]
steps = 1000
batch = 32
warmup = 40
eval_examples = 300
eval_every = 250
)";

Claim language() {
  return conversion(
      {.id = "luna.convert-text",
       .statement = "The same of a trained language model.",
       .quantity = "bits a byte of the Jargon File, windows of 64 bytes: " + kFineTuned,
       .rule = all_of({ordering({"Hedgehog", "LUNA"}, 0.01), ordering({"elu + 1", "T2R", "Hedgehog"}, 0)}),
       .published = {{.name = "LUNA, share of BERT's GLUE score", .value = 0.995, .where = "table of GLUE"},
                     {.name = "Hedgehog, share of BERT's GLUE score", .value = 0.993, .where = "table of GLUE"}},
       .figure = {.kind = "bars",
                  .y = "bits a byte",
                  .caption = "What each successor of softmax recovers after equal fine-tuning; lower is better."},
       .units = {{"recovered by ", "of softmax"}},
       .otherwise = "size: Hedgehog's map starts at exp, those of LUNA and T2R at random, and 300 steps do not make up for it",
       .full_only = true},
      {.recipe = kText, .models = {{.name = "softmax", .rate = 1e-2}}, .judged = Judged::after_equal_steps, .search = false});
}

// ---------------------------------------------------------------------------------------------------------------------------
// From the start: a small likeness of the Long Range Arena. Two layers of width 32 with learned positions that see the whole
// input; all models have the same width, steps and choice of learning rates, and parameters that differ by their feature maps
// alone.

constexpr const char* kArena = R"(
[model]
width = 32
positions = true
mlp = "gelu"
mlp_factor = 2
deviation = 0.1
[train]
warmup = 40
weight_decay = 0
eval_examples = 1000
)";

struct Arena {
  const char* id;
  const char* statement;
  const char* task;
  Overrides set;
  double over_softmax, over_performer;  // by how much LUNA is to be better
  double published_softmax, published_performer, published_luna;
};

Claim arena(const Arena& of) {
  const auto model = [](const char* name, const std::string& preset, const Settings& options) {
    Contender one{.name = name, .set = {"model.layers=" + preset + "*2"}, .rate = 3e-3};
    for (const auto& [key, value] : options) one.set.push_back("mixer." + preset + "." + key + "=" + value);
    return one;
  };
  const Settings seen{{"heads", "2"}, {"causal", "false"}, {"position", "none"}};
  const char* where = "table of the Long Range Arena";
  return trained(
      {.id = of.id,
       .statement = of.statement,
       .quantity = of.task,
       .rule = all_of({greater("LUNA", "softmax", of.over_softmax), greater("LUNA", "Performer", of.over_performer)}),
       .published = {{.name = "LUNA", .value = of.published_luna, .where = where},
                     {.name = "softmax", .value = of.published_softmax, .where = where},
                     {.name = "Performer", .value = of.published_performer, .where = where}},
       .figure = {.kind = "bars", .y = "accuracy", .caption = "Trained from the start, with equal steps and width."},
       .units = {{"parameters of ", "parameters"}},
       .otherwise = "size: on inputs of 24 to 196 tokens there is little that softmax or the Performer lack; the source has "
                    "1,024 to 4,096",
       .unclear =
           "size: inputs of 24 to 196 tokens, the source has 1,024 to 4,096; three seeds differ by more than the models do, "
           "though the steps were raised from 300 to 1,000 and 2,000",
       .full_only = true},
      {.recipe = kArena,
       .quick = of.set,
       .full = of.set,
       .models = {model("softmax", "softmax", seen), model("Performer", "performer", seen), model("LUNA", "luna", seen)},
       .judged = Judged::after_equal_steps},
      [](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
        for (const auto& one : chosen) found.put("parameters of " + one.model->name, double(one.runs.at(0)->parameters));
      });
}

std::vector<Claim> arenas() {
  return {
      arena({.id = "luna.arena-listops",
             .statement = "On ListOps LUNA is as good as softmax and better than the Performer.",
             .task = "share of 2,000 expressions of 6 to 23 tokens whose value is right after 2,000 steps of 32, learning rate "
                     "searched",
             .set = {"task.name=listops", "task.shortest=5", "task.length=24", "task.depth=3", "task.arguments=4",
                     "train.steps=2000", "train.batch=32", "train.eval_every=500"},
             .over_softmax = -0.01,
             .over_performer = 0.02,
             .published_softmax = 0.3871,
             .published_performer = 0.1801,
             .published_luna = 0.3894}),
      arena({.id = "luna.arena-pictures",
             .statement = "On long sequences of small pieces of pictures LUNA is better than softmax and the Performer.",
             .task =
                 "share of 2,000 test pictures of Fashion-MNIST, as 196 squares of 2 x 2 pixels, that are recognised after 1,000 "
                 "steps of 16, learning rate searched",
             .set = {"task.name=images", "task.patch=2", "train.steps=1000", "train.batch=16", "train.eval_every=500"},
             .over_softmax = 0.02,
             .over_performer = 0.02,
             .published_softmax = 0.3914,
             .published_performer = 0.4277,
             .published_luna = 0.6432}),
      arena({.id = "luna.arena-bytes",
             .statement = "On the bytes of texts LUNA is better than softmax and the Performer.",
             .task =
                 "share of 2,000 passages of 128 bytes whose text, one of 14 licences that Debian installs, is named right after "
                 "1,000 steps of 16, learning rate searched; the end of each text is for the test (the source has film reviews)",
             .set = {"task.name=text", "task.label=file", "task.path=/usr/share/common-licenses", "task.length=128",
                     "task.test_share=0.2", "train.steps=1000", "train.batch=16", "train.eval_every=500"},
             .over_softmax = 0.02,
             .over_performer = 0.02,
             .published_softmax = 0.6155,
             .published_performer = 0.654,
             .published_luna = 0.7341})};
}

}  // namespace

std::vector<Claim> luna_models() {
  std::vector<Claim> all{pictures(), language()};
  std::ranges::move(arenas(), std::back_inserter(all));
  return all;
}

}  // namespace isomer::study
