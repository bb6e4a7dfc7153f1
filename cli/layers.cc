#include "cli/layers.h"

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/timing.h"
#include "isomer/base/stopwatch.h"
#include "isomer/mixers/cost.h"
#include "isomer/nn/init.h"
#include "isomer/nn/mixer.h"

namespace isomer::cli {

namespace {
struct LayerCase {
  const Preset* preset;
  Index width, T;
  bool backward;

  [[nodiscard]] const char* direction() const { return backward ? "forward+backward" : "forward"; }
};

struct LayerRow {
  LayerCase what;
  BenchCase law;  // the main one
  Cost cost;
  Timing timing;
  double peak, product_share, law_share;

  [[nodiscard]] double us_per_token() const { return timing.median * 1e6 / double(what.T); }
  /// Backward counts twice.
  [[nodiscard]] double gflops() const { return cost.flops_per_token * (what.backward ? 3 : 1) / us_per_token() / 1e3; }
  [[nodiscard]] double outside_share() const { return 1 - product_share - law_share; }
  [[nodiscard]] Index state_bytes() const { return Index(sizeof(float)) * (cost.state_floats + cost.state_per_token * what.T); }
};

/// A mixer with random weights and input, and what its calls took so far.
struct Layer {
  Parameters<float> parameters;
  Mixer<float> mixer;
  std::vector<float> x;
  Profile profile;
  double seconds = 0;

  Layer(const graph::Graph& graph, Index T) : mixer(graph, parameters, ""), x(std::size_t(T * graph.width)) {
    initialise(parameters, 1);
    Rng rng(2);
    for (float& number : x) number = float(rng.normal());
  }
  void run(Tape<float>& tape, const LayerCase& what) {
    const Stopwatch watch;
    parameters.zero_gradients();
    const Var<float> y = mixer.forward(tape, tape.input(contiguous(x.data(), {1, what.T, 1, what.width}), what.backward));
    if (what.backward) tape.backward(y);
    tape.clear();
    seconds += watch.seconds();
  }
};

/// The call of the first law of that name.
BenchCase main_law(const graph::Graph& graph, Index T) {
  for (const graph::Node& node : graph.nodes)
    if (const auto* law = std::get_if<graph::Law>(&node.work); law != nullptr && graph::name_of(*law) == graph.law)
      return law_case(graph, node, T);
  return {.subject = graph.law, .variant = "", .T = T};
}

LayerRow time_layer(const LayerCase& what, double peak, Context& context, double budget) {
  const graph::Graph graph = build_mixer(*what.preset, {.width = what.width});
  LayerRow row{what, main_law(graph, what.T), cost_of(graph, what.T), {}, peak, 0, 0};
  row.law.form = find_law(graph.law).choose(row.law).form;
  Layer layer(graph, what.T);
  Tape<float> tape(context, what.backward ? Record::yes : Record::no);
  // The first call allocates, and the second takes what the first needed as one block: they belong to no profile.
  for (int call = 0; call < 2; ++call) layer.run(tape, what);
  layer.seconds = 0;
  tape.profile(&layer.profile);
  row.timing = measure({.run = [&](Context&) { layer.run(tape, what); }}, context, budget);
  row.product_share = layer.profile.seconds(Profile::Kind::product) / layer.seconds;
  row.law_share = layer.profile.seconds(Profile::Kind::law) / layer.seconds;
  return row;
}

std::vector<LayerCase> cases_of(const Preset& preset, bool quick) {
  std::vector<LayerCase> cases;
  for (const Index width : {256, 512})
    for (const Index T : {1024, 4096})
      for (const bool backward : {false, true})
        if (!quick || (width == 256 && T == 1024)) cases.push_back({&preset, width, T, backward});
  return cases;
}

void print_table(const std::vector<LayerRow>& rows, int threads) {
  Table table({"preset", "law", "form", "direction", "width", "T", "threads", "tokens/s", "±", "GFLOP/s", "of peak", "products",
               "law", "outside"});
  for (const LayerRow& row : rows)
    table.add({std::string(row.what.preset->name), row.law.subject, std::string(name_of(row.law.form)), row.what.direction(),
               std::to_string(row.what.width), std::to_string(row.what.T), std::to_string(threads),
               formatted("%.0f", 1e6 / row.us_per_token()), formatted("%.1f%%", 100 * row.timing.spread / row.timing.median),
               formatted("%.1f", row.gflops()), percent(row.gflops() / row.peak), percent(row.product_share),
               percent(row.law_share), percent(row.outside_share())});
  table.print();
}

nlohmann::ordered_json as_json(const LayerRow& row, int threads) {
  return {{"subject", row.what.preset->name},
          {"law", row.law.subject},
          {"form", name_of(row.law.form)},
          {"direction", row.what.direction()},
          {"width", row.what.width},
          {"B", 1},
          {"T", row.what.T},
          {"H", row.law.H},
          {"K", row.law.K},
          {"V", row.law.V},
          {"threads", threads},
          {"type", "f32"},
          {"us_per_token", row.us_per_token()},
          {"tokens_per_s", 1e6 / row.us_per_token()},
          {"spread_us", row.timing.spread * 1e6 / double(row.what.T)},
          {"samples", row.timing.samples},
          {"gflops", row.gflops()},
          {"peak_share", row.gflops() / row.peak},
          {"product_share", row.product_share},
          {"law_share", row.law_share},
          {"outside_share", row.outside_share()},
          {"state_bytes", row.state_bytes()},
          {"peer", nullptr},
          {"ratio", nullptr}};
}
}  // namespace

void bench_layers(const PresetBench& request, Context& context) {
  std::vector<LayerRow> rows;
  const std::string refused =
      each_sound_preset(request, context, [&](const Preset& preset, double peak, const Progress& progress) {
        for (const LayerCase& what : cases_of(preset, request.quick)) {
          progress.show(std::string(preset.name) + " " + what.direction() + " width " + std::to_string(what.width) + " T " +
                        std::to_string(what.T));
          rows.push_back(time_layer(what, peak, context, request.quick ? 0.2 : 1.0));
        }
      });
  if (request.json) {
    auto all = nlohmann::ordered_json::array();
    for (const LayerRow& row : rows) all.push_back(as_json(row, context.threads()));
    print_json(context, all);
  } else {
    print_table(rows, context.threads());
  }
  if (!refused.empty()) throw RunFailed(refused);
}

}  // namespace isomer::cli
