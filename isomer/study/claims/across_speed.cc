// Across the sources: what tokens cost on this machine, by length, in training and in decoding.
#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "isomer/bench/compare.h"
#include "isomer/mixers/cost.h"
#include "isomer/mixers/preset.h"
#include "isomer/study/claims/sources.h"
#include "isomer/study/lab.h"
#include "isomer/train/session.h"

namespace isomer::study {

namespace {

Claim crossovers() {
  return {
      .id = "across.crossover",
      .statement = "On this machine every law of constant state is cheaper than softmax attention from a short length on.",
      .quantity =
          "tokens from which on a law's forward and backward pass is faster, 8 heads of 64, one thread; the latest of all laws, "
          "in five rounds (quick: two) over lengths from 32 to 4096 (quick: 64 to 1024)",
      .rule = at_most("latest crossover, tokens", 1024),
      .published = {{.name = "linear against quadratic cost", .where = "all sources, direction only"}},
      .figure = {.kind = "loglog",
                 .x = "tokens",
                 .y = "microseconds a token, forward and backward",
                 .caption = "A token costs softmax more the longer the text is; laws of constant state the same at any length."},
      .measure = [](const Budget& budget, Context& context, Evidence& found) {
        std::vector<const Law*> linear;
        for (const Law* law : laws())
          if (law->name() != "attention") linear.push_back(law);
        const std::set<std::string> drawn{"scalar_decay gated", "channel_decay gla", "delta gated", "delta rwkv7", "scan s6"};
        for (int round = 0; round < budget.pick(2, 5); ++round) {
          double latest = 0;
          bool first = true;
          for (const CrossoverRow& row : crossover(linear, context, 64, budget.mode == Mode::quick, {})) {
            const double at = row.at.value_or(1e9);
            latest = std::max(latest, at);
            const std::string law = row.what.subject + " " + row.what.variant, name = law + ", " + row.what.direction;
            found.add(name, at);
            found.set_unit(name, "tokens");
            if (row.what.direction == "forward") continue;
            for (std::size_t i = 0; i < row.lengths.size(); ++i) {
              const double T = double(row.lengths[i]);
              if (first) found.add("softmax attention", T, row.softmax_seconds[i] / T * 1e6);
              if (drawn.contains(law)) found.add(law, T, row.seconds[i] / T * 1e6);
            }
            first = false;
          }
          found.add("latest crossover, tokens", latest);
          found.set_unit("latest crossover, tokens", "tokens");
        }
      }};
}

// Two layers, as in the recall of all presets.
constexpr const char* kDecoded = R"(
[model]
width = 32
layers = ["softmax*2"]
[mixer.all]
heads = 1
[task]
name = "mqar"
length = 16
vocabulary = 32
[train]
batch = 32
)";

/// Processor seconds a token of the first and of the last of some tokens, one at a time.
struct Decoding {
  double first = 0, last = 0;
};
Decoding decode(const Model<float>& model, Context& context) {
  constexpr Index kTokens = 1024, kEnds = 256;
  Tape<float> tape(context, Record::no);
  ModelState<float> state = model.start(1);
  Decoding found;
  const auto some = [&](Index count) {
    const ProcessorTime watch;
    for (Index t = 0; t < count; ++t) (void)model.step(tape, std::array<std::int64_t, 1>{1 + t % 31}, state);
    return watch.seconds() / double(count);
  };
  found.first = some(kEnds);
  (void)some(kTokens - 2 * kEnds);
  found.last = some(kEnds);
  return found;
}

/// Tokens of training in a second of processor time.
double training_speed(Session& session) {
  constexpr int kSteps = 3;
  double tokens = 0;
  const ProcessorTime watch;
  for (int step = 0; step < kSteps; ++step) tokens += double(session.step().tokens);
  return tokens / watch.seconds();
}

bool constant_state(std::string_view preset) { return cost_of(build_mixer(preset, {.width = 32}), 64).state_per_token == 0; }

Claim decoding() {
  return {
      .id = "across.decoding",
      .statement =
          "A token costs a mixer of constant state the same wherever it stands, and softmax attention more the further in.",
      .quantity =
          "processor seconds a token of tokens 769 to 1024 over those of tokens 1 to 256, decoded one at a time by two layers of "
          "width 32, one thread; the largest of presets of constant state, their median in 15 rounds (quick: five) over all "
          "presets in turn; beside it tokens of training in a second of processor time, in batches of 32 x 16",
      .rule = all_of({at_most("largest of constant state", 1.2), at_least("softmax", 1.2)}),
      .published = {{.name = "constant against growing cost", .where = "all sources, direction only"}},
      .figure = {.kind = "bars",
                 .y = "tokens/s",
                 .caption = "Tokens that each preset decodes in a second, one at a time, after 768 others."},
      .unclear = "the intervals are of rounds on a machine that others may use",
      .measure = [](const Budget& budget, Context& context, Evidence& found) {
        struct Timed {
          std::string preset;
          std::unique_ptr<Session> session;
          std::vector<double> ratios = {};
        };
        std::vector<Timed> all;
        for (const Preset* preset : presets()) {
          if (!graph::causal(build_mixer(*preset, {.width = 32}))) continue;
          const std::string layers = "model.layers=" + std::string(preset->name) + "*2";
          const Recipe recipe = parse_recipe(parse_toml(kDecoded, "the claim's recipe"), Overrides{layers});
          all.push_back({std::string(preset->name), std::make_unique<Session>(recipe, context)});
        }
        for (int round = 0; round < budget.pick(5, 15); ++round)
          for (Timed& one : all) {
            const Decoding times = decode(one.session->model(), context);
            found.add(one.preset + ", decoding", 1 / times.last);
            found.add(one.preset + ", training", training_speed(*one.session));
            found.set_unit(one.preset + ", training", "tokens/s of training");
            one.ratios.push_back(times.last / times.first);
            if (one.preset != "softmax") continue;
            found.add("softmax", one.ratios.back());
            found.set_unit("softmax", "ratio");
          }
        double largest = 0, error = 0;
        for (Timed& one : all) {
          std::ranges::sort(one.ratios);
          const std::size_t n = one.ratios.size();
          if (!constant_state(one.preset) || one.ratios[n / 2] < largest) continue;
          largest = one.ratios[n / 2];
          error = std::max(one.ratios[n / 2] - one.ratios[n / 2 - 1], one.ratios[n / 2 + 1] - one.ratios[n / 2]);
        }
        found.put("largest of constant state", largest, error);
        found.set_unit("largest of constant state", "ratio");
      }};
}

}  // namespace

std::vector<Claim> across_speed() { return {crossovers(), decoding()}; }

}  // namespace isomer::study
