// Selective RoPE in small models that are trained. The source's state tracking has width 384, 12 heads, words of 128 in training
// and 512 in the test, and 100 epochs of two million words; here width 32, 4 heads, words of 16, 32 and 64, and 2,000 batches
// of 32. As there, all temperatures are equal; they are 4 here, so that an angle of pi is within reach of so few steps (with 1
// nothing was learned in 1,500), and the phase has no SiLU. Trained on words of 32 one seed of three found the rotation in 1,000
// steps of GLA.
#include <array>
#include <string>

#include "isomer/study/claims/sources.h"
#include "isomer/study/probes.h"
#include "isomer/study/trained.h"

namespace isomer::study {

namespace {

constexpr const char* kWords = R"(
[model]
width = 32
[mixer.all]
heads = 4
[task]
name = "word-problem"
group = "S2"
length = 16
test_length = 16
[train]
steps = 2000
batch = 32
warmup = 50
eval_every = 200
eval_examples = 128
)";

constexpr const char* kCopying = R"(
[model]
width = 32
layers = ["gla*2"]
mlp = "none"
deviation = 0.125
[mixer.all]
heads = 4
[task]
name = "copying"
shortest = 2
longest = 6
context = 32
test_length = 6
[train]
steps = 2000
batch = 32
warmup = 50
eval_every = 200
eval_examples = 128
)";

constexpr const char* kRecall = R"(
[model]
width = 32
layers = ["gla*2"]
mlp = "none"
norm = "layer"
deviation = 0.18
[mixer.all]
heads = 2
[task]
name = "mqar"
length = 16
pairs = 4
vocabulary = 32
[train]
steps = 5000
batch = 32
warmup = 50
schedule = "constant"
eval_every = 250
eval_examples = 256
patience = 6
)";

constexpr const char* kMad = R"(
[model]
width = 32
layers = ["gla*2"]
deviation = 0.125
[mixer.all]
heads = 4
[train]
steps = 600
batch = 16
warmup = 30
eval_every = 100
eval_examples = 256
)";

const Overrides kNone{"mixer.all.position=none"}, kRope{"mixer.all.position=rope"},
    kSelective{"mixer.all.position=selective-rope"};
const Overrides kTracking{"mixer.all.position=selective-rope", "mixer.all.phase_temperature=equal", "mixer.all.phase_max=4",
                          "mixer.all.phase_silu=false"};

Overrides joined(Overrides a, const Overrides& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Words two and four times as long as in training.
const Probe kLonger{.name = "words of 32 and 64", .measure = [](Session& session, Context& context) -> Numbers {
                      const ProbeOptions options{.examples = 256};
                      return {{"32", value_with(session, {"task.test_length=32"}, options, context)},
                              {"64", value_with(session, {"task.test_length=64"}, options, context)}};
                    }};

const Probe kLongerStrings{.name = "strings of 8 and 9", .measure = [](Session& session, Context& context) -> Numbers {
                             const ProbeOptions options{.examples = 256};
                             return {{"8", value_with(session, {"task.test_length=8"}, options, context)},
                                     {"9", value_with(session, {"task.test_length=9"}, options, context)}};
                           }};

/// One mixer with each position. The rates are those of a quick study.
struct Rates {
  double none, rope, selective;
};
std::vector<Contender> positions(const Overrides& mixer, const Rates& quick, const Overrides& selective = kTracking) {
  return {{.name = "no positions", .set = joined(mixer, kNone), .rate = quick.none},
          {.name = "RoPE", .set = joined(mixer, kRope), .rate = quick.rope},
          {.name = "selective RoPE", .set = joined(mixer, selective), .rate = quick.selective}};
}

/// What the probe measured of each model, beside its metric.
More also(std::vector<std::pair<std::string, std::string>> numbers) {
  return [numbers = std::move(numbers)](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
    for (const Comparison::Chosen& one : chosen)
      for (const CellResult* run : one.runs)
        for (const auto& [number, text] : numbers) found.add(one.model->name + text, run->diverged ? 0 : run->numbers.at(number));
  };
}

Comparison words(std::vector<Contender> models, const Overrides& more = {}) {
  return {.recipe = kWords,
          .quick = more,
          .full = more,
          .models = std::move(models),
          .judged = Judged::after_equal_steps,  // as in the source
          .probe = &kLonger};
}
More longer_words() { return also({{"32", ", words of 32"}, {"64", ", words of 64"}}); }

constexpr const char* kWordsRight =
    "share of words of 16 with every prefix right after 2,000 steps of 32 words of that length, the same number for all; beside "
    "it words of 32 and 64; learning rate searched";

constexpr const char* kCounted =
    "size: words of 16 are short enough to be counted; in 2,000 steps they are learned without rotation, too, and hardly carry "
    "on "
    "to 64";
constexpr const char* kTooShort =
    "size: words of 16, seeds that differ; words of 32 were tried, too, and took more steps than a claim has";

Claim learned_parity() {
  return trained(
      {.id = "selective-rope.parity-gla",
       .statement = "One layer of GLA learns parity with selective RoPE and goes on to words twice as long; without positions or "
                    "with RoPE it does not learn even the length of training.",
       .quantity = kWordsRight,
       .rule = all_of({at_least("selective RoPE", 0.9), at_least("selective RoPE, words of 32", 0.5),
                       at_most("no positions", 0.5), at_most("RoPE", 0.5)}),
       .published = {{.name = "solved, four times as long too; NoPE and RoPE fail", .where = "state-tracking figure"}},
       .figure = {.kind = "bars",
                  .y = "share of words right",
                  .caption = "Selective RoPE beside RoPE and none, at the length of training and beyond."},
       .otherwise = kCounted,
       .unclear = kTooShort},
      words(positions({"model.layers=gla"}, {1e-2, 3e-2, 3e-2})), longer_words());
}

Claim four_times_as_long() {
  return trained(
      {.id = "selective-rope.parity-length",
       .statement = "What GLA with selective RoPE has learned of parity holds at four times the length of training.",
       .quantity = "share of words of 64 with every prefix right, trained on words of 16",
       .rule = at_least("selective RoPE, words of 64", 0.9),
       .published = {{.name = "trained on 128, right at 512", .where = "state-tracking figure"}},
       .figure = {.kind = "bars",
                  .y = "share of words right",
                  .caption = "Words of 16, 32 and 64, after training on words of 16."},
       .unclear = "size: one seed in three finds an angle of pi exactly enough for words of 64, the others fade at 32; the "
                  "source trains on 200 million words, not 64 thousand"},
      words({positions({"model.layers=gla"}, {1e-2, 3e-2, 3e-2}).back()}), longer_words());
}

Claim softmax_parity() {
  return trained(
      {.id = "selective-rope.parity-softmax",
       .statement = "One layer of softmax attention learns parity with selective RoPE, up to a little beyond the length of "
                    "training; without positions or with RoPE it does not.",
       .quantity = kWordsRight,
       .rule = all_of({at_least("selective RoPE", 0.9), at_most("no positions", 0.5), at_most("RoPE", 0.5)}),
       .published = {{.name = "solved to a bit beyond 128", .where = "state-tracking figure"}},
       .figure = {.kind = "bars",
                  .y = "share of words right",
                  .caption = "Selective RoPE beside RoPE and none, at the length of training and beyond."},
       .otherwise = kCounted,
       .unclear = kTooShort,
       .full_only = true},
      words(positions({"model.layers=softmax"}, {1e-2, 1e-2, 1e-2})), longer_words());
}

Claim deltanet_parity() {
  std::vector<Contender> models = positions({"model.layers=deltanet"}, {1e-2, 1e-2, 1e-2});
  models.push_back({.name = "no positions, beta up to 2",
                    .set = {"model.layers=deltanet", "mixer.all.position=none", "mixer.deltanet.negative=true"},
                    .rate = 1e-2});
  return trained(
      {.id = "selective-rope.parity-deltanet",
       .statement = "A DeltaNet layer whose beta ends at 1 does not learn parity without positions or with RoPE; selective RoPE "
                    "or a beta up to 2 gives it the eigenvalue -1 that parity needs.",
       .quantity = kWordsRight,
       .rule = all_of({at_least("selective RoPE", 0.9), at_least("no positions, beta up to 2", 0.9), at_most("no positions", 0.5),
                       at_most("RoPE", 0.5)}),
       .published = {{.name = "parity needs an eigenvalue -1", .where = "section on expressivity"}},
       .figure = {.kind = "bars",
                  .y = "share of words right",
                  .caption = "What gives DeltaNet an eigenvalue of -1, beside what does not."},
       .otherwise = kCounted,
       .unclear = kTooShort,
       .full_only = true},
      words(models), longer_words());
}

Claim three_elements() {
  return trained(
      {.id = "selective-rope.z3-deltanet",
       .statement = "Two DeltaNet layers learn the cyclic group of three elements with selective RoPE, up to the length of "
                    "training, and not without.",
       .quantity = kWordsRight,
       .rule = all_of({at_least("selective RoPE", 0.9), at_most("no positions", 0.5), at_most("RoPE", 0.5)}),
       .published = {{.name = "A3 solved up to 128", .where = "state-tracking figure"}},
       .figure = {.kind = "bars",
                  .y = "share of words right",
                  .caption = "Three elements, at the length of training and beyond."},
       .otherwise =
           "size: with RoPE most words of 16 are right in every seed, without positions in some; neither carries on to 64",
       .unclear = "size: without rotation some seeds learn words of 16 and others do not",
       .full_only = true},
      words(positions({"model.layers=deltanet*2"}, {3e-3, 3e-3, 3e-3}), {"task.group=A3"}), longer_words());
}

/// With the temperatures that the source has for copying.
const Overrides kCopyingPhases{"mixer.all.position=selective-rope", "mixer.all.phase_temperature=rfa"};

Claim copying() {
  return trained(
      {.id = "selective-rope.copying",
       .statement = "GLA with selective RoPE copies strings longer than those of training; without positions it does worse, with "
                    "RoPE worst.",
       .quantity = "share of strings of 8 letters copied without a mistake, trained on 2 to 6; beside it strings of 6 and of 9; "
                   "two layers of width 32, 2,000 steps of 32 examples, learning rate searched",
       .rule = all_of({greater("selective RoPE, strings of 8", "no positions, strings of 8", 0.1),
                       greater("no positions, strings of 8", "RoPE, strings of 8", 0)}),
       .published = {{.name = "trained on 64, nearly perfect to several hundred; RoPE worst", .where = "copying figure"}},
       .figure = {.kind = "bars",
                  .y = "share of strings right",
                  .caption = "Trained on strings of 2 to 6, asked for 6, 8 and 9."},
       .unclear = "size and training: GLA with and without positions still improves after 2,000 steps, and three seeds differ by "
                  "more than "
                  "positions do; the source trains on strings of 64",
       .full_only = true},
      {.recipe = kCopying, .models = positions({}, {1e-2, 1e-2, 1e-2}, kCopyingPhases), .probe = &kLongerStrings},
      also({{"8", ", strings of 8"}, {"9", ", strings of 9"}}));
}

Claim recall() {
  return trained(
      {.id = "selective-rope.mqar",
       .statement = "Selective RoPE helps GLA to recall: more than RoPE, and RoPE more than no positions.",
       .quantity = "share of keys whose value is recalled, 4 pairs in 16 tokens, two layers of width 32 without convolution, "
                   "until six looks in a row, 250 steps apart, bring nothing better, or for 5,000 steps; learning rate searched",
       .rule = all_of({greater("selective RoPE", "RoPE", 0), greater("RoPE", "no positions", 0)}),
       .published = {{.name = "the largest gain over none for GLA", .where = "MQAR figure"}},
       .figure = {.kind = "bars", .y = "accuracy", .caption = "Recall of GLA with each kind of position."},
       .unclear =
           "size: RoPE of either kind recalls 4 pairs nearly always, so that there is nothing between them; with 2 pairs all "
           "three were alike",
       .full_only = true},
      {.recipe = kRecall, .models = positions({}, {1e-2, 1e-2, 1e-2}, kSelective)});
}

/// A task of the MAD suite, smaller than there, and the source's row of five: compression … selective copying.
struct MadTask {
  const char* name;
  Overrides set;
};
const std::vector<MadTask> kMadTasks{
    {"compression", {"task.name=mad-compress", "task.length=8"}},
    {"fuzzy recall", {"task.name=mad-fuzzy", "task.vocabulary=9", "task.longest=2", "task.length=32"}},
    {"recall", {"task.name=mad-recall", "task.vocabulary=8", "task.length=32"}},
    {"memorisation", {"task.name=mad-memorize", "task.vocabulary=64", "task.length=16"}},
    {"noisy recall", {"task.name=mad-noisy", "task.vocabulary=12", "task.noise_symbols=4", "task.length=32"}},
    {"selective copying", {"task.name=mad-copy", "task.length=24", "task.tokens=4"}},
};
std::vector<std::string> mad_task_names() {
  std::vector<std::string> names;
  for (const MadTask& task : kMadTasks) names.emplace_back(task.name);
  return names;
}
struct MadRow {
  const char* name;
  Overrides set;
  double published;
  std::array<double, 6> by_task;  // published
};
const std::vector<MadRow> kMadRows{
    {"no positions", kNone, 0.659, {0.820, 0.085, 0.873, 0.387, 0.876, 0.911}},
    {"RoPE", kRope, 0.725, {0.852, 0.075, 0.926, 0.614, 0.919, 0.964}},
    {"selective RoPE", joined(kSelective, {"mixer.all.phase_gate=false"}), 0.720, {0.852, 0.090, 0.940, 0.571, 0.917, 0.949}},
    {"+ phase gate", joined(kSelective, {"mixer.all.phase_gate=true"}), 0.723, {0.851, 0.075, 0.966, 0.569, 0.943, 0.935}},
    {"+ gate and bias",
     joined(kSelective, {"mixer.all.phase_gate=true", "mixer.all.phase_bias=true"}),
     0.732,
     {0.854, 0.072, 0.959, 0.604, 0.950, 0.956}},
};

Claim mad_table() {
  Comparison table{.recipe = kMad, .models = {}, .judged = Judged::after_equal_steps};
  std::vector<Published> published;
  for (const MadRow& row : kMadRows) {
    for (std::size_t task = 0; task < kMadTasks.size(); ++task)
      table.models.push_back({.name = row.name, .set = joined(row.set, kMadTasks[task].set), .rate = 1e-2, .x = double(task)});
    published.push_back({.name = std::string(row.name) + ", mean", .value = row.published, .where = "table of MAD"});
    for (std::size_t task = 0; task < kMadTasks.size(); ++task)
      published.push_back(
          {.name = std::string(row.name) + ", " + kMadTasks[task].name, .value = row.by_task[task], .where = "table of MAD"});
  }
  return trained(
      {.id = "selective-rope.mad",
       .statement =
           "On the six tasks of MAD, GLA gains most from RoPE of either kind; selective RoPE with gate and bias is ahead.",
       .quantity =
           "mean accuracy over six tasks, smaller than the source's, two layers of width 32 after 600 steps of 16, learning rate "
           "searched for every row and task; by task in the figure: compression, fuzzy recall, "
           "recall, memorisation, noisy recall, selective copying",
       .rule = all_of({greater("RoPE, mean", "no positions, mean", 0), greater("+ gate and bias, mean", "no positions, mean", 0),
                       greater("+ gate and bias, mean", "RoPE, mean", 0)}),
       .published = published,
       .figure =
           {.kind = "bars",
            .x = "task",
            .y = "accuracy",
            .caption =
                "MAD, scaled down: what each way to give positions is worth to GLA; diamonds are the source's, of larger tasks.",
            .names = mad_task_names()},
       .units = {{"", "accuracy"}},
       .unclear =
           "size: RoPE and selective RoPE with gate and bias are ahead of the others and equal to each other, as nearly in the "
           "source (0.725 and 0.732); some of the six tasks are solved by all here, or by none",
       .full_only = true},
      std::move(table), [](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
        const std::size_t tasks = kMadTasks.size();
        for (std::size_t row = 0; row < kMadRows.size(); ++row)
          for (std::size_t seed = 0; seed < chosen.front().runs.size(); ++seed) {
            double mean = 0;
            for (std::size_t task = 0; task < tasks; ++task) mean += chosen[row * tasks + task].runs[seed]->value / double(tasks);
            found.add(std::string(kMadRows[row].name) + ", mean", mean);
          }
      });
}

}  // namespace

std::vector<Claim> selective_rope_models() {
  return {learned_parity(), four_times_as_long(), softmax_parity(), deltanet_parity(), three_elements(), copying(),
          recall(),         mad_table()};
}

}  // namespace isomer::study
