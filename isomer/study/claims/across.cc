// Across the sources: every preset on one recall task and on one text, with as many parameters as the others.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "isomer/base/stopwatch.h"
#include "isomer/bench/compare.h"
#include "isomer/mixers/cost.h"
#include "isomer/mixers/preset.h"
#include "isomer/nn/mixer_dsf.h"
#include "isomer/study/claims/sources.h"
#include "isomer/study/trained.h"

namespace isomer::study {

namespace {

constexpr Index kWidth = 32;
// What a layer has: as many as the largest mixer, and an MLP of a few.
constexpr double kLayerParameters = 21000;

// After 4 pairs of key and value, which value belongs to a key?
constexpr const char* kRecall = R"(
[model]
width = 32
norm = "layer"
deviation = 0.125
positions = true
[mixer.all]
heads = 1
[task]
name = "mqar"
length = 16
pairs = 4
vocabulary = 32
[train]
steps = 2000
batch = 32
warmup = 50
schedule = "constant"
eval_every = 250
eval_examples = 256
stop_at = 0.99
)";

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

/// Two layers of a preset; its MLP makes the number of parameters the same for all.
Contender preset_model(const std::string& preset, double rate, bool full_only) {
  const Settings heads{{"heads", "1"}};
  const bool has_heads = std::ranges::any_of(options_of(find_preset(preset), {.width = kWidth}),
                                             [](const MixerOption& option) { return option.name == "heads"; });
  const Cost cost = cost_of(build_mixer(preset, {.width = kWidth}, has_heads ? heads : Settings{}), 64);
  const double factor = (kLayerParameters - double(cost.parameters)) / double(3 * kWidth * kWidth);
  return {.name = preset,
          .set = {"model.layers=" + preset + "*2", "model.mlp_factor=" + std::to_string(factor)},
          .rate = rate,
          .full_only = full_only};
}

std::vector<Contender> preset_models(double rate, const std::vector<std::string>& quick) {
  std::vector<Contender> models;
  for (const Preset* preset : presets()) {
    const std::string name(preset->name);
    models.push_back(preset_model(name, rate, std::ranges::find(quick, name) == quick.end()));
  }
  return models;
}

// ---------------------------------------------------------------------------------------------------------------------------

/// Positions in the order of rising values; equal ones share theirs.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<double> all;
  for (const double x : values) {
    double rank = 0;
    for (const double y : values) rank += y < x ? 1 : y == x ? 0.5 : 0;
    all.push_back(rank);
  }
  return all;
}

/// Spearman's: the correlation of ranks; 0 where one of the two does not vary.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mx = mean(x), my = mean(y);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    xy += (x[i] - mx) * (y[i] - my), xx += (x[i] - mx) * (x[i] - mx), yy += (y[i] - my) * (y[i] - my);
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

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

/// What a trained model keeps, how fast it decodes, and how its effective attention looks on a few sequences.
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
            monotone_sum += rank_correlation({row.begin(), row.end()}, by), ++monotone_rows;
          }
  });
  ModelState<float> state = model.start(1);
  Index steps = 0;
  const Stopwatch watch;
  for (; steps < batch.T; ++steps) (void)model.step(tape, std::span(batch.tokens).subspan(std::size_t(steps), 1), state);
  const double seconds = watch.seconds();
  return {{"state bytes", double(state.bytes())},
          {"decoding, tokens/s", double(steps) / seconds},
          {"spikiness", rows > 0 ? spiky / rows : 0},
          {"monotonicity", monotone_rows > 0 ? monotone_sum / monotone_rows : 0}};
}
const Probe kLook{.name = "look", .measure = look};

Comparison recall() {
  return {.recipe = kRecall, .models = preset_models(3e-3, {}), .judged = Judged::after_equal_steps, .probe = &kLook};
}

/// A number of the probe for every preset, and its rank correlation with the metric, seed by seed.
void correlate(const std::vector<Comparison::Chosen>& chosen, const std::string& number, Evidence& found) {
  for (std::size_t seed = 0; seed < chosen.front().runs.size(); ++seed) {
    std::vector<double> values, numbers;
    for (const Comparison::Chosen& one : chosen) {
      const CellResult& run = *one.runs[seed];
      if (run.diverged) continue;
      values.push_back(run.value), numbers.push_back(run.numbers.at(number));
      found.add(one.model->name, run.numbers.at(number), run.value);
    }
    found.add("rank correlation with " + number, rank_correlation(values, numbers));
  }
}

Claim recall_and_state() {
  return trained(
      {.id = "across.recall-state",
       .statement = "What a mixer recalls follows the size of the state that it keeps.",
       .quantity = "rank correlation, over all presets at equal parameters, of the accuracy of recalling 4 pairs with the bytes "
                   "of the state after 16 tokens; learning rate searched for each, 2,000 steps or 0.99",
       .rule = at_least("rank correlation with state bytes", 0.3),
       .published = {{.name = "recall is bounded by the state", .where = "sources 2, 5 and 8, direction only"}},
       .figure = {.kind = "scatter", .x = "state, bytes", .y = "accuracy", .caption = "Every preset: recall by what it keeps."},
       .full_only = true},
      recall(), [](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
        correlate(chosen, "state bytes", found);
        for (const Comparison::Chosen& one : chosen) {
          found.put(one.model->name + ", decoding tokens/s", one.runs.front()->numbers.at("decoding, tokens/s"));
          found.put(one.model->name + ", training tokens/s", one.runs.front()->tokens_per_s);
        }
      });
}

Claim recall_and_attention() {
  return trained(
      {.id = "across.spikiness",
       .statement = "Mixers whose effective attention is spiky, and follows the products of queries and keys, recall better.",
       .quantity =
           "rank correlation, over all presets at equal parameters, of the accuracy of recalling 4 pairs with one minus the "
           "entropy of the rows of the effective attention matrix, and with how well rows follow q.k",
       .rule = all_of({at_least("rank correlation with spikiness", 0.3), at_least("rank correlation with monotonicity", 0.3)}),
       .published = {{.name = "both properties of softmax are what linear attention lacks", .where = "Hedgehog, direction only"}},
       .figure = {.kind = "scatter",
                  .x = "spikiness, monotonicity",
                  .y = "accuracy",
                  .caption = "Every preset: recall by the look of its attention."},
       .full_only = true},
      recall(), [](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
        correlate(chosen, "spikiness", found);
        correlate(chosen, "monotonicity", found);
      });
}

Claim language() {
  return trained(
      {.id = "across.bytes",
       .statement = "At equal parameters and steps, no mixer of constant state learns a text better than softmax attention.",
       .quantity =
           "bits per byte of two layers of width 32 after 300 steps, learning rate searched for each; the least of mixers of "
           "constant state (quick: 150 steps at one rate, of four)",
       .rule = at_most("softmax minus the best of constant state", 0.05),
       .published = {{.name = "softmax is the one to reach", .where = "all sources, direction only"}},
       .figure = {.kind = "bars", .y = "bits per byte", .caption = "Every preset after equal steps; lower is better."},
       .otherwise =
           "after so few steps the last bytes are what counts: mixers with a convolution or a decay look there from the start, "
           "softmax has to learn it"},
      {.recipe = kBytes,
       .quick = {"train.steps=150", "train.warmup=20"},
       .models = preset_models(1e-2, {"softmax", "linear-elu", "gla", "deltanet", "mamba2"}),
       .judged = Judged::after_equal_steps},
      [](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
        const auto softmax = std::ranges::find(chosen, "softmax", [](const auto& one) { return one.model->name; });
        for (std::size_t seed = 0; seed < softmax->runs.size(); ++seed) {
          double least = 1e300;
          for (const Comparison::Chosen& one : chosen)
            if (cost_of(build_mixer(one.model->name, {.width = kWidth}), 64).state_per_token == 0)
              least = std::min(least, one.runs[seed]->value);
          found.add("softmax minus the best of constant state", softmax->runs[seed]->value - least);
        }
      });
}

Claim crossovers() {
  return {.id = "across.crossover",
          .statement = "On this machine every law of constant state is cheaper than softmax attention from a short length on.",
          .quantity = "tokens from which on a law's forward and backward pass is faster, 8 heads of 64, one thread; the latest",
          .rule = at_most("latest crossover, tokens", 1024),
          .published = {{.name = "linear against quadratic cost", .where = "all sources, direction only"}},
          .figure = {.kind = "bars",
                     .x = "law",
                     .y = "tokens",
                     .caption = "From how many tokens on each law beats softmax attention on this machine."},
          .measure = [](const Budget& budget, Context& context, Evidence& found) {
            std::vector<const Law*> linear;
            for (const Law* law : laws())
              if (law->name() != "attention") linear.push_back(law);
            for (int repetition = 0; repetition < budget.pick(2, 3); ++repetition) {
              double latest = 0;
              for (const CrossoverRow& row : crossover(linear, context, 64, true, {})) {
                const double at = row.at.value_or(1e9);
                latest = std::max(latest, at);
                found.add(row.what.subject + " " + row.what.variant + ", " + row.what.direction, at);
              }
              found.add("latest crossover, tokens", latest);
            }
          }};
}

}  // namespace

Source across() {
  return {.id = "across",
          .title = "Across the sources: all presets side by side",
          .about =
              "One recall task, one text and one machine for every preset: accuracy, loss, state, speed, and what the effective "
              "attention matrix has to do with it.",
          .claims = {crossovers(), language(), recall_and_state(), recall_and_attention()}};
}

}  // namespace isomer::study
