#include "isomer/nn/mixer_dsf.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "isomer/base/rng.h"

namespace isomer {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Tensor& output_of(const LawCall& call) { return call.outputs.begin()->second; }

Index heads_of(const LawCall& call) { return output_of(call).shape().size() == 4 ? output_of(call).shape()[2] : 1; }

double difference(const Signal& a, const Signal& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double d = std::abs(a.values[i] - b.values[i]);
    worst = std::isnan(d) ? kInfinity : std::max(worst, d);
  }
  return worst;
}

double largest(const Signal& a) {
  double most = 0;
  for (const Complex& x : a.values) most = std::max(most, std::abs(x));
  return most;
}

DsfView::Range range(const std::vector<Complex>& values, double (*of)(const Complex&)) {
  DsfView::Range r{kInfinity, -kInfinity};
  for (const Complex& x : values) {
    r.low = std::min(r.low, of(x));
    r.high = std::max(r.high, of(x));
  }
  return r;
}

}  // namespace

double dsf_error(const LawCall& call, const DsfOptions& options) {
  const Law& law = find_law(call.law);
  double worst = 0, size = 0;
  for (Index n = 0; n < output_of(call).shape()[0]; ++n)
    for (Index h = 0; h < heads_of(call); ++h) {
      const DsfPlace place{n, h};
      const Dsf system = realise(law, call.inputs, call.settings, place, options);
      const Signal u = written(law, call.inputs, place), y = read(law, call.inputs, call.outputs, place);
      worst = std::max({worst, difference(run(system, u), y), difference(apply_map(system, materialise(system), u), y)});
      size = std::max(size, largest(y));
    }
  return worst / (size > 0 ? size : 1);
}

DsfView::Range DsfView::size_range() const {
  Range all{kInfinity, 0};
  for (std::size_t t = 1; t < sizes.size(); ++t) {
    all.low = std::min(all.low, sizes[t].low);
    all.high = std::max(all.high, sizes[t].high);
  }
  return all;
}

std::vector<DsfView> dsf_views(const LawCall& call, Index sequence) {
  std::vector<DsfView> views;
  for (Index h = 0; h < heads_of(call); ++h) {
    const Dsf system = realise(find_law(call.law), call.inputs, call.settings, {sequence, h});
    DsfWeights weights = weights_of(system);
    DsfView view{.law = call.law,
                 .node = call.node,
                 .head = h,
                 .channels = system.channels,
                 .features = system.features,
                 .sizes = {},
                 .angles = {},
                 .horizon = weights.horizon,
                 .averaged = system.groups > 1,
                 .weights = std::move(weights.values)};
    for (const std::vector<Complex>& values : eigenvalues(system)) {
      view.sizes.push_back(range(values, [](const Complex& x) { return std::abs(x); }));
      view.angles.push_back(range(values, [](const Complex& x) { return std::arg(x); }));
    }
    views.push_back(std::move(view));
  }
  return views;
}

std::vector<Var<double>> from_other_layers(Tape<double>& tape, const graph::Graph& graph, Index T, std::uint64_t seed) {
  Rng rng(seed, 1);
  std::vector<Var<double>> taken;
  for (const int node : graph::taken(graph)) {
    const graph::Node& from = graph.nodes[std::size_t(node)];
    taken.push_back(tape.make({1, T, from.heads, from.size}, {}));
    std::generate_n(taken.back().value.data, taken.back().value.size(), [&] { return rng.normal(); });
  }
  return taken;
}

}  // namespace isomer
