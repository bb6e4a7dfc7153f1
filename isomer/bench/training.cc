#include "isomer/bench/training.h"

#include "isomer/base/format.h"

namespace isomer {

namespace {
TrainingRow time_training(const TrainingCase& what, Context& context, double budget) {
  BenchTraining training(bench_config(what.preset, what.sizes), what.B, what.T, context);
  // The first step allocates, the second takes what the first needed as one block; measure() has one more before it counts.
  training.step();
  const Timing timing = measure({.run = [&](Context&) { training.step(); }}, context, budget);
  return {what, timing, context.threads(), training.parameters.trained_size(), training.flops_per_token()};
}

std::vector<TrainingCase> training_cases(const Preset& preset, bool quick) {
  const std::string name(preset.name);
  if (quick) return {{name, 2, 512}};
  return {{name, 16, 512}, {name, 2, 4096}};
}
}  // namespace

Cells cells_of(const TrainingRow& row) {
  return {{"preset", row.what.preset},
          {"layers", std::to_string(row.what.sizes.layers)},
          {"width", std::to_string(row.what.sizes.width)},
          {"B", std::to_string(row.what.B)},
          {"T", std::to_string(row.what.T)},
          {"threads", std::to_string(row.threads)},
          {"parameters", std::to_string(row.parameters)},
          {"tokens/s", formatted("%.0f", 1e6 / row.us_per_token())},
          {"±", formatted("%.1f%%", 100 * row.timing.spread / row.timing.median)},
          {"GFLOP/s", formatted("%.1f", row.gflops())},
          {"of peak", percent(row.gflops() / row.peak)}};
}

Json to_json(const TrainingRow& row) {
  return Json::object({{"subject", row.what.preset},
                       {"direction", "train"},
                       {"layers", row.what.sizes.layers},
                       {"width", row.what.sizes.width},
                       {"vocabulary", row.what.sizes.vocabulary},
                       {"B", row.what.B},
                       {"T", row.what.T},
                       {"threads", row.threads},
                       {"type", "f32"},
                       {"parameters", row.parameters},
                       {"us_per_token", row.us_per_token()},
                       {"tokens_per_s", 1e6 / row.us_per_token()},
                       {"spread_us", row.timing.spread * 1e6 / double(row.what.B * row.what.T)},
                       {"samples", row.timing.samples},
                       {"gflops", row.gflops()},
                       {"peak_share", row.gflops() / row.peak},
                       {"peer", nullptr},
                       {"ratio", nullptr}});
}

BenchRows<TrainingRow> bench_training(const PresetBench& plan, Context& context, const Monitor& monitor) {
  BenchRows<TrainingRow> result;
  const SoundPresets sound = each_sound_preset(plan, context, monitor, [&](const Preset& preset) {
    for (const TrainingCase& what : training_cases(preset, plan.quick)) {
      if (monitor.stopped()) return;
      monitor.show("training " + what.preset + " on " + std::to_string(what.B) + " x " + std::to_string(what.T));
      result.rows.push_back(time_training(what, context, plan.quick ? 0.5 : 5.0));
    }
  });
  result.refused = sound.refused;
  for (TrainingRow& row : result.rows) row.peak = sound.peak;
  return result;
}

}  // namespace isomer
