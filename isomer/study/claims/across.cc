// Across the sources: every preset on one recall task and on one text, with as many parameters as the others.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "isomer/base/correlation.h"
#include "isomer/base/error.h"
#include "isomer/mixers/cost.h"
#include "isomer/mixers/preset.h"
#include "isomer/nn/mixer_dsf.h"
#include "isomer/study/claims/sources.h"
#include "isomer/study/trained.h"

namespace isomer::study {

namespace {

constexpr Index kWidth = 32;
// After 4 pairs of key and value, which value belongs to a key? With queries and keys of 4 numbers and values of 8 a head has a
// state of 4 x 8 numbers where it has queries and keys, so that 4 pairs are not for everybody.
constexpr const char* kRecall = R"(
[model]
width = 32
norm = "layer"
deviation = 0.125
positions = true
[mixer.all]
heads = 1
key = 4
value = 8
[task]
name = "mqar"
length = 16
pairs = 4
vocabulary = 32
[train]
steps = 20000
batch = 32
warmup = 50
schedule = "constant"
eval_every = 250
eval_examples = 256
stop_at = 0.99
)";
// What stop_at calls recalled: how far above it a run happened to end says nothing.
constexpr double kRecalled = 0.99;
// Models that have not begun to recall stand between 0.34 and 0.39, some of them for 16,000 steps before they leave.
constexpr double kBegun = 0.4;

// The Jargon File, which `tools/setup text` installs.
constexpr const char* kBytes = R"(
[model]
width = 32
deviation = 0.12
[mixer.all]
heads = 1
[task]
name = "text"
length = 64
[train]
steps = 300
batch = 8
warmup = 30
eval_examples = 64
)";

/// Of a preset, those of the settings that it has.
Settings known(const std::string& preset, const Settings& settings) {
  Settings all;
  for (const MixerOption& option : options_of(find_preset(preset), {.width = kWidth}))
    if (const auto set = settings.find(option.name); set != settings.end()) all.insert(*set);
  return all;
}

double parameters_of(const std::string& preset, const Settings& settings) {
  return double(cost_of(build_mixer(preset, {.width = kWidth}, known(preset, settings)), 64).parameters);
}

/// Two layers of each preset; its MLP makes the parameters of a layer as many for all: as the largest mixer has, and an MLP of a
/// few.
struct Sizes {
  double parameters;                         // of a layer
  Settings settings;                         // of all mixers that have them
  std::map<std::string, Settings> own = {};  // of a mixer that is made for larger widths
};
std::vector<Contender> preset_models(double rate, const Sizes& sizes, const std::vector<std::string>& quick) {
  std::vector<Contender> models;
  for (const Preset* preset : presets()) {
    const std::string name(preset->name);
    Settings settings = sizes.settings;
    Contender& model =
        models.emplace_back(Contender{.name = name, .rate = rate, .full_only = std::ranges::find(quick, name) == quick.end()});
    if (const auto own = sizes.own.find(name); own != sizes.own.end())
      for (const auto& [key, value] : own->second) {
        settings.insert_or_assign(key, value);
        model.set.push_back("mixer." + name + "." + key + "=" + value);
      }
    const double factor = (sizes.parameters - parameters_of(name, settings)) / double(3 * kWidth * kWidth);
    require(factor > 0, "study", "expected a mixer of less than ", sizes.parameters, " parameters, got ", name);
    model.set.push_back("model.layers=" + name + "*2");
    model.set.push_back("model.mlp_factor=" + std::to_string(factor));
  }
  return models;
}

// ---------------------------------------------------------------------------------------------------------------------------

/// How far the weights of a row are from uniform: 0 for equal ones, 1 for a single one.
double spikiness(std::span<const double> row) {
  double sum = 0, entropy = 0;
  for (const double w : row) sum += std::abs(w);
  if (sum == 0) return 0;
  for (const double w : row)
    if (w != 0) entropy -= std::abs(w) / sum * std::log(std::abs(w) / sum);
  return 1 - entropy / std::log(double(row.size()));
}

/// Scores of a query and the keys before it, of a law that has both.
std::vector<double> scores(const LawCall& call, Index sequence, Index head, Index t) {
  const auto q = call.inputs.find("q"), k = call.inputs.find("k");
  if (q == call.inputs.end() || k == call.inputs.end()) return {};
  const auto row = [&](const Tensor& x, Index time) {
    const auto& shape = x.shape();
    const Index heads = shape[2], size = shape[3];
    return x.data<double>() + ((sequence * shape[1] + time) * heads + head * heads / std::max(heads, head + 1)) * size;
  };
  std::vector<double> all;
  for (Index s = 0; s <= t; ++s)
    all.push_back(std::inner_product(row(q->second, t), row(q->second, t) + q->second.shape()[3], row(k->second, s), 0.0));
  return all;
}

std::string law_of(const std::string& preset) { return std::string(build_mixer(preset, {.width = kWidth}).law); }

/// What a trained model keeps, and how its effective attention looks on a few sequences.
Numbers look(Session& session, Context& context) {
  constexpr Index kSequences = 4, kFirstRow = 8;
  Tape<float> tape(context, Record::no);
  Batch batch;
  session.task().fill(Split::test, 0, kSequences, batch);
  double spiky = 0, rows = 0, monotone_sum = 0, monotone_rows = 0;
  const Model<float>& model = session.model();
  model.visit_blocks(tape, input_of(batch), [&](Index layer, Var<float> x, std::span<const Var<float>> taken) {
    const Block<float>& block = model.block(layer);
    for (const LawCall& call : block.mixer().law_calls(tape, block.mixer_input(tape, x), {.taken = taken}))
      for (Index sequence = 0; sequence < kSequences; ++sequence)
        for (const DsfView& view : dsf_views(call, sequence))
          for (Index t = kFirstRow; t < batch.T; ++t) {
            const std::span row(view.weights.data() + t * batch.T, std::size_t(t + 1));
            spiky += spikiness(row), ++rows;
            const std::vector<double> by = scores(call, sequence, view.head, t);
            if (by.empty()) continue;
            monotone_sum += spearman(row, by), ++monotone_rows;
          }
  });
  ModelState<float> state = model.start(1);
  for (Index t = 0; t < batch.T; ++t) (void)model.step(tape, std::span(batch.tokens).subspan(std::size_t(t), 1), state);
  Numbers numbers{{"state bytes", double(state.bytes())}, {"spikiness", rows > 0 ? spiky / rows : 0}};
  // A law without queries and keys has no products to follow.
  if (monotone_rows > 0) numbers.emplace("monotonicity", monotone_sum / monotone_rows);
  return numbers;
}
const Probe kLook{.name = "look, without times", .measure = look};

// What is made for larger widths is made smaller, so that most of a model need not be an MLP that evens out parameters.
const Sizes kRecallSizes{.parameters = 5500,
                         .settings = {{"heads", "1"}, {"key", "4"}, {"value", "8"}},
                         .own = {{"qlstm", {{"state", "24"}}},
                                 {"qlstm-reversed", {{"state", "24"}}},
                                 {"lru", {{"state", "24"}}},
                                 {"rg-lru", {{"heads", "4"}}},
                                 {"mamba", {{"expand", "1"}, {"state", "4"}}},
                                 {"mamba2", {{"inner", "32"}}},
                                 {"rwkv6", {{"mix_rank", "8"}, {"decay_rank", "8"}}}}};

Comparison recall() { return {.recipe = kRecall, .models = preset_models(3e-3, kRecallSizes, {}), .probe = &kLook}; }

/// A number of the probe for every preset that has it, and its rank correlation with the accuracy, seed by seed. Above what
/// stop_at asks for accuracies are equal. The correlation of a study with models that were still improving, or had not begun to
/// recall, goes on to what it were with all of these at the goal.
void correlate(const std::vector<Comparison::Chosen>& chosen, const std::string& number, Evidence& found) {
  const std::string name = "rank correlation with " + number;
  double at_best = 0;
  bool bounds = false;
  const std::size_t seeds = chosen.front().runs.size();
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    std::vector<double> values, best, numbers;
    for (const Comparison::Chosen& one : chosen) {
      const CellResult& run = *one.runs[seed];
      const auto own = run.numbers.find(number);
      if (run.diverged || own == run.numbers.end()) continue;
      numbers.push_back(own->second);
      values.push_back(std::min(run.value, kRecalled));
      const bool bound = run.improving || run.value < kBegun;
      best.push_back(bound ? kRecalled : values.back());
      bounds = bounds || bound;
    }
    found.add(name, spearman(values, numbers));
    at_best += spearman(best, numbers) / double(seeds);
  }
  found.set_unit(name, "rank correlation");
  if (bounds) found.may_reach(name, at_best);
  for (const Comparison::Chosen& one : chosen) {
    std::vector<double> numbers;
    for (const CellResult* run : one.runs)
      if (const auto own = run->numbers.find(number); own != run->numbers.end()) numbers.push_back(own->second);
    if (numbers.size() < seeds) continue;
    for (const CellResult* run : one.runs) found.add(one.model->name, mean(numbers), run->value);
    found.set_group(one.model->name, law_of(one.model->name));
  }
  std::string waiting;
  for (const Comparison::Chosen& one : chosen)
    if (std::ranges::any_of(one.runs, [](const CellResult* run) { return run->value < kBegun; }))
      waiting += (waiting.empty() ? "" : ", ") + one.model->name;
  if (!waiting.empty()) found.note("had not begun to recall in some run when the steps ended: " + waiting);
}

constexpr const char* kSetting =
    "recalling 4 pairs in 16 tokens with queries and keys of 4 numbers and values of 8, two layers of width 32 with one head, "
    "all presets with as "
    "many parameters; learning rate searched for each, trained until it recalls 0.99 or 20,000 steps are over, and no sooner: "
    "linear attention may stand at 0.36 for 16,000 steps before it learns; accuracies from 0.99 on count as equal";

Claim recall_and_state() {
  return trained(
      {.id = "across.recall-state",
       .statement = "What a mixer recalls follows the size of the state that it keeps.",
       .quantity =
           std::string("rank correlation, over all presets, of the bytes of the state after 16 tokens with the accuracy of ") +
           kSetting,
       .rule = at_least("rank correlation with state bytes", 0.3),
       .published = {{.name = "recall is bounded by the state", .where = "sources 2, 5 and 8, direction only"}},
       .figure = {.kind = "scatter",
                  .x = "state, bytes",
                  .y = "accuracy",
                  .caption =
                      "Every preset: recall by what it keeps. The line joins those that no other beats with less; near 0.37 "
                      "stand those that had not begun to recall when the steps ended.",
                  .front = true},
       .otherwise = "size: the kind of update matters more than the bytes it has",
       .unclear = "size: the bytes of a state tell how much it may hold; whether a mixer learns to use them differs by kind",
       .full_only = true},
      recall(), [](const std::vector<Comparison::Chosen>& chosen, Evidence& found) { correlate(chosen, "state bytes", found); });
}

Claim recall_and_attention(const char* id, const char* statement, const char* number, const char* what) {
  return trained(
      {.id = id,
       .statement = statement,
       .quantity =
           std::string("rank correlation, over all presets that have it, of ") + what + " with the accuracy of " + kSetting,
       .rule = at_least(std::string("rank correlation with ") + number, 0.3),
       .published = {{.name = "a property of softmax that linear attention lacks", .where = "Hedgehog, direction only"}},
       .figure = {.kind = "scatter",
                  .x = number,
                  .y = "accuracy",
                  .caption = "Every preset: recall by the look of its effective attention matrix. Near 0.37 stand those that had "
                             "not begun to recall when the steps ended."},
       .otherwise = "across kinds of mixers, not within one as in the source, it says little about recall",
       .unclear = "across kinds of mixers, not within one as in the source, it says little about recall",
       .full_only = true},
      recall(), [number](const std::vector<Comparison::Chosen>& chosen, Evidence& found) { correlate(chosen, number, found); });
}

/// The presets that the order is about, trained as in the claims of all presets: the same runs.
Claim order_of_spikiness() {
  const std::vector<std::string> medium{"hedgehog", "taylor"}, flat{"linear-elu", "performer", "cosformer"};
  const auto of = [](const std::string& preset) { return "spikiness of " + preset; };
  Comparison some = recall();
  std::vector<Rule> rules;
  std::set<std::string> asked{"softmax"};
  for (const std::string& one : medium) {
    rules.push_back(greater(of("softmax"), of(one), 0));
    for (const std::string& other : flat) rules.push_back(greater(of(one), of(other), 0.05));
  }
  asked.insert(medium.begin(), medium.end()), asked.insert(flat.begin(), flat.end());
  std::erase_if(some.models, [&](const Contender& model) { return !asked.contains(model.name); });
  return trained(
      {.id = "across.spikiness-order",
       .statement = "The rows of softmax are the spikiest; those of Hedgehog and of Taylor features come next, and elu + 1, the "
                    "Performer and cosFormer are far flatter.",
       .quantity = std::string("one minus the entropy of the rows of the effective attention matrix over that of equal weights, "
                               "after ") +
                   kSetting,
       .rule = all_of(std::move(rules)),
       .published = {{.name = "softmax, then Hedgehog and Taylor, then the others", .where = "Hedgehog, direction only"}},
       .figure = {.kind = "bars", .y = "spikiness", .caption = "How far each mixer's rows are from equal weights."},
       .units = {{"spikiness of ", "spikiness"}, {"", "accuracy"}},
       .otherwise = "training: what a row looks like is learned, and a task with 4 keys that must be told apart makes rows spiky "
                    "that the source's untrained or distilled maps leave flat",
       .unclear =
           "training: all but softmax still improve in some seed after 20,000 steps; where they stand elu + 1 is spikier than "
           "Hedgehog, and Taylor features are the flattest: a task with 4 keys that must be told apart makes rows spiky "
           "that the source's untrained or distilled maps leave flat",
       .full_only = true},
      some, [of](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
        for (const Comparison::Chosen& one : chosen) {
          for (const CellResult* run : one.runs)
            if (!run->diverged) found.add(of(one.model->name), run->numbers.at("spikiness"));
          // What a map looks like is no result either before it has learned.
          if (std::ranges::any_of(one.runs, &CellResult::improving)) found.may_reach(of(one.model->name), 1);
        }
      });
}

/// What softmax is behind the best mixer of constant state, seed by seed.
void behind_constant_state(const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
  const auto softmax = std::ranges::find(chosen, "softmax", [](const auto& one) { return one.model->name; });
  for (std::size_t seed = 0; seed < softmax->runs.size(); ++seed) {
    double least = 1e300;
    for (const Comparison::Chosen& one : chosen)
      if (cost_of(build_mixer(one.model->name, {.width = kWidth}), 64).state_per_token == 0)
        least = std::min(least, one.runs[seed]->value);
    found.add("softmax minus the best of constant state", softmax->runs[seed]->value - least);
  }
}

Rule behind() { return at_most("softmax minus the best of constant state", 0.05); }
const std::vector<Published> kToReach{
    {.name = "softmax is the one to reach", .value = {}, .where = "all sources, direction only"}};

Claim bytes(Claim claim, Comparison comparison) {
  comparison.judged = Judged::after_equal_steps;
  return trained(std::move(claim), std::move(comparison), behind_constant_state);
}

std::vector<Contender> bytes_models() {
  return preset_models(1e-2, {.parameters = 21000, .settings = {{"heads", "1"}}},
                       {"softmax", "linear-elu", "gla", "deltanet", "mamba2"});
}

Claim early_language() {
  return bytes(
      {.id = "across.bytes-early",
       .statement = "At equal parameters and after few steps, no mixer of constant state has learned a text better than softmax "
                    "attention.",
       .quantity =
           "bits per byte of two layers of width 32 after 300 steps, learning rate searched for each; the least of mixers of "
           "constant state (quick: 150 steps at one rate, of four)",
       .rule = behind(),
       .published = kToReach,
       .figure = {.kind = "bars", .y = "bits per byte", .caption = "Every preset after equal steps; lower is better."},
       .otherwise =
           "after so few steps the last bytes are what counts: mixers with a convolution or a decay look there from the start, "
           "softmax has to learn it (across.bytes has more steps)"},
      {.recipe = kBytes, .quick = {"train.steps=150", "train.warmup=20"}, .models = bytes_models()});
}

Claim language() {
  // Of each kind the one of constant state that was ahead in across.bytes-early, with the learning rate that was best there.
  const std::set<std::string> some{"softmax", "mamba", "qlstm", "mamba2", "inline", "gated-deltanet"};
  std::vector<Contender> models = bytes_models();
  std::erase_if(models, [&](const Contender& model) { return !some.contains(model.name); });
  return bytes(
      {.id = "across.bytes",
       .statement = "At equal parameters and steps, no mixer of constant state learns a text better than softmax attention.",
       .quantity = "bits per byte of two layers of width 32 after 10,000 steps, three times the bytes of the text; of mixers of "
                   "constant state the five that led their kinds in across.bytes-early, learning rates as found there",
       .rule = behind(),
       .published = kToReach,
       .figure = {.kind = "bars", .y = "bits per byte", .caption = "After 10,000 equal steps; lower is better."},
       .otherwise =
           "size: two layers of width 32 on windows of 64 bytes ask for little that a state cannot hold; of the rate it is "
           "not: softmax at 3e-3 and at 3e-2 was tried with one seed",
       .unclear = "training: what softmax was behind after 300 steps (across.bytes-early) it makes up on the way; seeds "
                  "differ by about as much as is left",
       .full_only = true},
      {.recipe = kBytes, .full = {"train.steps=10000"}, .models = std::move(models), .search = false});
}

}  // namespace

Source across() {
  std::vector<Claim> claims = across_speed();
  claims.push_back(early_language());
  claims.push_back(language());
  claims.push_back(recall_and_state());
  claims.push_back(recall_and_attention("across.spikiness", "Mixers whose effective attention is spiky recall better.",
                                        "spikiness", "one minus the entropy of the rows of the effective attention matrix"));
  claims.push_back(recall_and_attention(
      "across.monotonicity", "Mixers whose effective attention follows the products of queries and keys recall better.",
      "monotonicity", "how well the rows of the effective attention matrix follow q.k"));
  claims.push_back(order_of_spikiness());
  return {.id = "across",
          .title = "Across the sources: all presets side by side",
          .about =
              "One recall task, one text and one machine for every preset: accuracy, loss, state, speed, and what the effective "
              "attention matrix has to do with it.",
          .claims = std::move(claims)};
}

}  // namespace isomer::study
