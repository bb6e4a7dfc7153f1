#include "cli/show_dsf.h"

#include <algorithm>
#include <cstdio>

#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/base/rng.h"
#include "isomer/models/model_dsf.h"
#include "isomer/nn/init.h"
#include "isomer/nn/mixer_dsf.h"

namespace isomer::cli {

namespace {

constexpr std::uint64_t kSeed = 1;
constexpr Index kLongest = 64;  // matrices beyond are for no eye, and systems take T squared

std::vector<DsfView> views_of(const graph::Graph& graph, Index T, Context& context) {
  Parameters<double> parameters;
  Mixer<double> mixer(graph, parameters, "");
  initialise(parameters, kSeed);
  Rng rng(kSeed);
  std::vector<double> x(std::size_t(T * graph.width));
  for (double& value : x) value = rng.normal();
  Tape<double> tape(context, Record::no);
  const std::vector<Var<double>> taken = from_other_layers(tape, graph, T, kSeed);
  std::vector<DsfView> views;
  const Var<double> input = tape.input(contiguous(x.data(), {1, T, 1, graph.width}));
  for (const LawCall& call : mixer.law_calls(tape, input, {.taken = taken}))
    for (DsfView& view : dsf_views(call)) views.push_back(std::move(view));
  return views;
}

std::string text(const DsfView::Range& range, const char* format) {
  const std::string low = formatted(format, range.low), high = formatted(format, range.high);
  return low == high ? low : low + " to " + high;
}

std::string angles(const DsfView& view) {
  DsfView::Range all = view.angles.front();
  for (const DsfView::Range& r : view.angles) all = {std::min(all.low, r.low), std::max(all.high, r.high)};
  return text(all, "%.2f");
}

void print_matrix(const DsfView& view, Index T) {
  for (Index t = 0; t < T; ++t) {
    for (Index s = 0; s <= t; ++s) std::printf(" %8.3g", view.weights[std::size_t(t * T + s)]);
    std::printf("\n");
  }
}

/// A head of a law, and of which layer and preset it is.
struct Shown {
  Index layer;
  std::string preset;
  DsfView view;
};

/// Of a model, with the layer in front.
void print_heads(const std::vector<Shown>& heads, Index T, bool of_model) {
  std::vector<std::string> head{"law", "head", "channels", "features", "state", "size of eigenvalues", "angle", "memory horizon"};
  if (of_model) head.insert(head.begin(), {"layer", "preset"});
  Table table(std::move(head));
  for (const auto& [layer, preset, view] : heads) {
    std::string horizon = formatted("%.1f tokens", view.horizon.tokens);
    if (view.horizon.unfinished > 0) horizon += formatted(", %.0f %% not forgotten", 100 * view.horizon.unfinished);
    std::vector<std::string> row{view.law,
                                 std::to_string(view.head),
                                 std::to_string(view.channels),
                                 std::to_string(view.features),
                                 std::to_string(view.state_dimension()),
                                 T > 1 ? text(view.size_range(), "%.4g") : "-",
                                 angles(view),
                                 horizon};
    if (of_model) row.insert(row.begin(), {std::to_string(layer), preset});
    table.add(std::move(row));
  }
  table.print();
}

void print_first(const DsfView& view, Index T) {
  std::cout << "\neffective attention matrix of " << view.law << ", head " << view.head
            << (view.averaged ? " (mean absolute value over channels)" : "") << ": y_t = sum_s M[t, s] u_s\n";
  print_matrix(view, T);
}

constexpr const char* kSystem = " as h = A h + B u, y = C h + D u, where u is what its law writes; ";

Json as_json(const Shown& shown, Index T) {
  const DsfView& view = shown.view;
  const auto ranges = [](const std::vector<DsfView::Range>& all) {
    std::vector<double> low, high;
    for (const DsfView::Range& r : all) low.push_back(r.low), high.push_back(r.high);
    return Json::object({{"low", low}, {"high", high}});
  };
  Json matrix = Json::array();
  for (Index t = 0; t < T; ++t)
    matrix.push(std::vector<double>(view.weights.begin() + t * T, view.weights.begin() + (t + 1) * T));
  return Json::object({{"layer", shown.layer},
                       {"preset", shown.preset},
                       {"law", view.law},
                       {"node", view.node},
                       {"head", view.head},
                       {"T", T},
                       {"channels", view.channels},
                       {"features", view.features},
                       {"state_dimension", view.state_dimension()},
                       {"eigenvalue_size", ranges(view.sizes)},
                       {"eigenvalue_angle", ranges(view.angles)},
                       {"memory_horizon", view.horizon.tokens},
                       {"unfinished", view.horizon.unfinished},
                       {"averaged", view.averaged},
                       {"matrix", matrix}});
}

void print_json(const std::vector<Shown>& heads, Index T, const Context& context) {
  Json rows = Json::array();
  for (const Shown& head : heads) rows.push(as_json(head, T));
  cli::print_json(context, rows);
}
}  // namespace

void show_dsf(const graph::Graph& graph, const DsfRequest& request, Context& context) {
  require(request.T >= 1 && request.T <= kLongest, "--dsf", "expected --T from 1 to ", kLongest, ", got ", request.T);
  require(graph::causal(graph), "--dsf", "expected a causal mixer, got ", graph.preset, " of whole sequences");
  std::vector<Shown> heads;
  for (DsfView& view : views_of(graph, request.T, context)) heads.push_back({0, graph.preset, std::move(view)});
  if (request.json) return print_json(heads, request.T, context);
  std::cout << graph.preset << " at width " << graph.width << kSystem << request.T << " random tokens\n\n";
  print_heads(heads, request.T, false);
  print_first(heads[0].view, request.T);
}

void show_model_dsf(const ModelDsfRequest& request, Context& context) {
  const auto loaded = load_model(request.model);
  const ModelConfig& config = loaded->model.config();
  if (!loaded->tokenizer) throw Error(request.model + ": expected a model of tokens, got one of vectors");
  const std::vector<std::int64_t> tokens = loaded->tokenizer->encode_input(request.prompt).tokens;
  const Index T = Index(tokens.size());
  require(T >= 1 && T <= kLongest, "--dsf", "expected a --prompt of 1 to ", kLongest, " tokens, got ", T);
  std::vector<Shown> heads;
  for (const ModelLaw& law : laws_of(*loaded, {.B = 1, .T = T, .tokens = tokens}, context))
    for (DsfView& view : dsf_views(law.call))
      heads.push_back({law.layer, config.layers[std::size_t(law.layer)].preset, std::move(view)});
  if (request.json) return print_json(heads, T, context);
  const auto first = std::ranges::find(heads, request.layer, &Shown::layer);
  require(first != heads.end(), "--layer", "expected one below ", config.layers.size(), ", got ", request.layer);
  std::cout << request.model << kSystem << T << " tokens\n\n";
  print_heads(heads, T, true);
  std::cout << "\nlayer " << request.layer << ":";
  print_first(first->view, T);
}

}  // namespace isomer::cli
