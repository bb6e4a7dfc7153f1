#include "isomer/bench/layers.h"

#include "isomer/base/format.h"
#include "isomer/base/stopwatch.h"
#include "isomer/nn/init.h"
#include "isomer/nn/mixer.h"

namespace isomer {

namespace {
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

/// The first law of that name, as a row of the bench has it.
BenchCase main_law(const graph::Graph& graph, Index T, bool taped) {
  for (const graph::Node& node : graph.nodes)
    if (const auto* law = std::get_if<graph::Law>(&node.work); law != nullptr && law->name() == graph.law) {
      const LawSizes sizes = graph::law_sizes(graph, node, 1, T);
      // A law without heads has channels.
      const bool heads = law->law->law().input("q") >= 0;
      return {.subject = graph.law,
              .variant = "",
              .form = plan_of(graph, node, T, taped).form,
              .T = T,
              .H = heads ? sizes.H : 1,
              .K = heads         ? sizes.K
                   : sizes.C > 1 ? sizes.C
                                 : sizes.N,
              .V = heads         ? sizes.V
                   : sizes.C > 1 ? sizes.N
                                 : 1};
    }
  return {.subject = graph.law, .variant = "", .T = T};
}

LayerRow time_layer(const LayerCase& what, Context& context, double budget) {
  const graph::Graph graph = build_mixer(find_preset(what.preset), {.width = what.width});
  LayerRow row{.what = what,
               .law = main_law(graph, what.T, what.backward),
               .cost = cost_of(graph, what.T),
               .timing = {},
               .threads = context.threads()};
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

std::vector<LayerCase> layer_cases(const Preset& preset, bool quick) {
  std::vector<LayerCase> cases;
  for (const Index width : {256, 512})
    for (const Index T : {1024, 4096})
      for (const bool backward : {false, true})
        if (!quick || (width == 256 && T == 1024)) cases.push_back({std::string(preset.name), width, T, backward});
  return cases;
}

}  // namespace

Cells cells_of(const LayerRow& row) {
  return {{"preset", row.what.preset},
          {"law", row.law.subject},
          {"form", std::string(name_of(row.law.form))},
          {"direction", row.what.direction()},
          {"width", std::to_string(row.what.width)},
          {"T", std::to_string(row.what.T)},
          {"threads", std::to_string(row.threads)},
          {"tokens/s", formatted("%.0f", 1e6 / row.us_per_token())},
          {"±", formatted("%.1f%%", 100 * row.timing.spread / row.timing.median)},
          {"GFLOP/s", formatted("%.1f", row.gflops())},
          {"of peak", percent(row.gflops() / row.peak)},
          {"products", percent(row.product_share)},
          {"law", percent(row.law_share)},
          {"outside", percent(row.outside_share())}};
}

Json to_json(const LayerRow& row) {
  return Json::object({{"subject", row.what.preset},
                       {"law", row.law.subject},
                       {"form", name_of(row.law.form)},
                       {"direction", row.what.direction()},
                       {"width", row.what.width},
                       {"B", 1},
                       {"T", row.what.T},
                       {"H", row.law.H},
                       {"K", row.law.K},
                       {"V", row.law.V},
                       {"threads", row.threads},
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
                       {"ratio", nullptr}});
}

BenchRows<LayerRow> bench_layers(const PresetBench& plan, Context& context, const Monitor& monitor) {
  BenchRows<LayerRow> result;
  const SoundPresets sound = each_sound_preset(plan, context, monitor, [&](const Preset& preset) {
    for (const LayerCase& what : layer_cases(preset, plan.quick)) {
      if (monitor.stopped()) return;
      monitor.show(what.preset + " " + what.direction() + " width " + std::to_string(what.width) + " T " +
                   std::to_string(what.T));
      result.rows.push_back(time_layer(what, context, plan.quick ? 0.2 : 1.0));
    }
  });
  result.refused = sound.refused;
  for (LayerRow& row : result.rows) row.peak = sound.peak;
  return result;
}

}  // namespace isomer
