#include "cli/bench_train.h"

#include <nlohmann/json.hpp>

#include "cli/bench_model.h"
#include "cli/command.h"
#include "cli/timing.h"

namespace isomer::cli {

namespace {
struct TrainCase {
  const Preset* preset;
  Index B, T;
  BenchModelSizes sizes = {};
};

struct TrainRow {
  TrainCase what;
  Timing timing;
  Index parameters;
  double flops_per_token, peak;

  [[nodiscard]] double us_per_token() const { return timing.median * 1e6 / double(what.B * what.T); }
  [[nodiscard]] double gflops() const { return flops_per_token / us_per_token() / 1e3; }
};

TrainRow time_training(const TrainCase& what, double peak, Context& context, double budget) {
  BenchTraining training(bench_config(std::string(what.preset->name), what.sizes), what.B, what.T, context);
  // The first step allocates, the second takes what the first needed as one block; measure() has one more before it counts.
  training.step();
  const Timing timing = measure({.run = [&](Context&) { training.step(); }}, context, budget);
  return {what, timing, training.parameters.trained_size(), training.flops_per_token(), peak};
}

void print_table(const std::vector<TrainRow>& rows, int threads) {
  Table table({"preset", "layers", "width", "B", "T", "threads", "parameters", "tokens/s", "±", "GFLOP/s", "of peak"});
  for (const TrainRow& row : rows)
    table.add({std::string(row.what.preset->name), std::to_string(row.what.sizes.layers), std::to_string(row.what.sizes.width),
               std::to_string(row.what.B), std::to_string(row.what.T), std::to_string(threads), std::to_string(row.parameters),
               formatted("%.0f", 1e6 / row.us_per_token()), formatted("%.1f%%", 100 * row.timing.spread / row.timing.median),
               formatted("%.1f", row.gflops()), percent(row.gflops() / row.peak)});
  table.print();
}

nlohmann::ordered_json as_json(const TrainRow& row, int threads) {
  return {{"subject", row.what.preset->name},
          {"direction", "train"},
          {"layers", row.what.sizes.layers},
          {"width", row.what.sizes.width},
          {"vocabulary", row.what.sizes.vocabulary},
          {"B", row.what.B},
          {"T", row.what.T},
          {"threads", threads},
          {"type", "f32"},
          {"parameters", row.parameters},
          {"us_per_token", row.us_per_token()},
          {"tokens_per_s", 1e6 / row.us_per_token()},
          {"spread_us", row.timing.spread * 1e6 / double(row.what.B * row.what.T)},
          {"samples", row.timing.samples},
          {"gflops", row.gflops()},
          {"peak_share", row.gflops() / row.peak},
          {"peer", nullptr},
          {"ratio", nullptr}};
}

std::vector<TrainCase> cases_of(const Preset& preset, bool quick) {
  if (quick) return {{&preset, 2, 512}};
  return {{&preset, 16, 512}, {&preset, 2, 4096}};
}
}  // namespace

void bench_training(const PresetBench& request, Context& context) {
  std::vector<TrainRow> rows;
  const std::string refused =
      each_sound_preset(request, context, [&](const Preset& preset, double peak, const Progress& progress) {
        for (const TrainCase& what : cases_of(preset, request.quick)) {
          progress.show("training " + std::string(preset.name) + " on " + std::to_string(what.B) + " x " +
                        std::to_string(what.T));
          rows.push_back(time_training(what, peak, context, request.quick ? 0.5 : 5.0));
        }
      });
  if (request.json) {
    auto all = nlohmann::ordered_json::array();
    for (const TrainRow& row : rows) all.push_back(as_json(row, context.threads()));
    print_json(context, all);
  } else {
    print_table(rows, context.threads());
  }
  if (!refused.empty()) throw RunFailed(refused);
}

}  // namespace isomer::cli
