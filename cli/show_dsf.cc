#include "cli/show_dsf.h"

#include <algorithm>
#include <cstdio>

#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/base/rng.h"
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

void print_text(const graph::Graph& graph, const std::vector<DsfView>& views, Index T) {
  std::cout << graph.preset << " at width " << graph.width << " as h = A h + B u, y = C h + D u, where u is what its law writes; "
            << T << " random tokens\n\n";
  Table table({"law", "head", "channels", "features", "state", "size of eigenvalues", "angle", "memory horizon"});
  for (const DsfView& view : views) {
    std::string horizon = formatted("%.1f tokens", view.horizon.tokens);
    if (view.horizon.unfinished > 0) horizon += formatted(", %.0f %% not forgotten", 100 * view.horizon.unfinished);
    table.add({view.law, std::to_string(view.head), std::to_string(view.channels), std::to_string(view.features),
               std::to_string(view.state_dimension()), T > 1 ? text(view.size_range(), "%.4g") : "-", angles(view), horizon});
  }
  table.print();
  std::cout << "\neffective attention matrix of " << views[0].law << ", head " << views[0].head
            << (views[0].averaged ? " (mean absolute value over channels)" : "") << ": y_t = sum_s M[t, s] u_s\n";
  print_matrix(views[0], T);
}

Json as_json(const graph::Graph& graph, const DsfView& view, Index T) {
  const auto ranges = [](const std::vector<DsfView::Range>& all) {
    std::vector<double> low, high;
    for (const DsfView::Range& r : all) low.push_back(r.low), high.push_back(r.high);
    return Json::object({{"low", low}, {"high", high}});
  };
  Json matrix = Json::array();
  for (Index t = 0; t < T; ++t)
    matrix.push(std::vector<double>(view.weights.begin() + t * T, view.weights.begin() + (t + 1) * T));
  return Json::object({{"preset", graph.preset},
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

}  // namespace

void show_dsf(const graph::Graph& graph, const DsfRequest& request, Context& context) {
  require(request.T >= 1 && request.T <= kLongest, "--dsf", "expected --T from 1 to ", kLongest, ", got ", request.T);
  require(graph::causal(graph), "--dsf", "expected a causal mixer, got ", graph.preset, " of whole sequences");
  const std::vector<DsfView> views = views_of(graph, request.T, context);
  if (!request.json) return print_text(graph, views, request.T);
  Json rows = Json::array();
  for (const DsfView& view : views) rows.push(as_json(graph, view, request.T));
  print_json(context, rows);
}

}  // namespace isomer::cli
