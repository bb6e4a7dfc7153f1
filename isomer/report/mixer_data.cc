#include "isomer/report/mixer_data.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "isomer/base/error.h"
#include "isomer/base/format.h"
#include "isomer/base/hash.h"
#include "isomer/mixers/equations.h"
#include "isomer/mixers/preset.h"
#include "isomer/nn/init.h"
#include "isomer/nn/mixer_dsf.h"

namespace isomer {

namespace {
constexpr std::uint64_t kSeed = 1;

Json rounded(double x) { return std::isfinite(x) ? Json(std::stod(formatted("%.4g", x))) : Json(); }
Json rounded(const std::vector<double>& all) {
  Json list = Json::array();
  for (const double x : all) list.push(rounded(x));
  return list;
}
Json ranges(const std::vector<DsfView::Range>& all) {
  Json list = Json::array();
  for (const DsfView::Range& r : all) list.push(Json::Array{rounded(r.low), rounded(r.high)});
  return list;
}

std::vector<double> embedded(const std::vector<std::string>& words, Index width) {
  std::vector<double> x;
  for (const std::string& word : words) {
    Rng rng(kSeed, hash_of(word));
    for (Index i = 0; i < width; ++i) x.push_back(rng.normal());
  }
  return x;
}

/// The largest singular value, squared, by power iteration: for a number that is looked at.
double largest_square(const std::vector<Complex>& h, Index channels, Index features) {
  std::vector<Complex> v(std::size_t(features), 1.0);
  double square = 0;
  for (int i = 0; i < 30; ++i) {
    std::vector<Complex> next(std::size_t(features), 0.0);
    for (Index c = 0; c < channels; ++c) {
      const Complex* row = h.data() + c * features;
      Complex along = 0;
      for (Index f = 0; f < features; ++f) along += row[f] * v[f];
      for (Index f = 0; f < features; ++f) next[f] += std::conj(row[f]) * along;
    }
    double norm = 0;
    for (const Complex& x : next) norm += std::norm(x);
    square = std::sqrt(norm);
    if (square == 0) return 0;
    for (Complex& x : next) x /= square;
    v = std::move(next);
  }
  return square;
}

/// The state after each token, by its size and by how many directions it has.
struct StateCurve {
  std::vector<double> norm, rank;
};

StateCurve state_curve(const Dsf& system, const Signal& u) {
  const Index channels = system.channels, features = system.features;
  std::vector<Complex> h = system.initial;
  h.resize(std::size_t(channels * features));
  StateCurve curve;
  for (Index t = 0; t < system.T; ++t) {
    double sum = 0;
    for (Index c = 0; c < channels; ++c) {
      const DsfToken& token = system.token(t, system.group_of_channel(c));
      Complex* row = h.data() + c * features;
      Complex along = 0;
      for (std::size_t f = 0; f < token.right.size(); ++f) along += token.right[f] * row[f];
      for (Index f = 0; f < features; ++f) {
        row[f] = token.decay[f] * row[f] + token.B[f] * u(t, c);
        if (!token.left.empty()) row[f] += token.left[f] * along;
        sum += std::norm(row[f]);
      }
    }
    const double largest = largest_square(h, channels, features);
    curve.norm.push_back(std::sqrt(sum));
    curve.rank.push_back(largest > 0 ? sum / largest : 0);
  }
  return curve;
}

Json head_json(const LawCall& call, const DsfView& view, Index T) {
  const DsfPlace place{.sequence = 0, .head = view.head};
  const Dsf system = realise(find_law(call.law), call.inputs, call.settings, place);
  const StateCurve state = state_curve(system, written(find_law(call.law), call.inputs, place));
  Json matrix = Json::array();
  for (Index t = 0; t < T; ++t)
    matrix.push(rounded(std::vector<double>(view.weights.begin() + t * T, view.weights.begin() + t * T + t + 1)));
  return Json::object({{"law", view.law},
                       {"head", view.head},
                       {"channels", view.channels},
                       {"features", view.features},
                       {"averaged", view.averaged},
                       {"matrix", matrix},
                       {"sizes", ranges(view.sizes)},
                       {"angles", ranges(view.angles)},
                       {"horizon", rounded(view.horizon.tokens)},
                       {"unfinished", rounded(view.horizon.unfinished)},
                       {"norm", rounded(state.norm)},
                       {"rank", rounded(state.rank)}});
}

/// Queries and keys start near the input itself, so that like words attend to each other: what a mixer keeps of them shows. A
/// last projection that starts at zero (RWKV) would show nothing, and starts like the others.
graph::Graph recalling(graph::Graph graph) {
  for (graph::Node& node : graph.nodes) {
    auto* linear = std::get_if<graph::Linear>(&node.work);
    if (linear == nullptr) continue;
    if (node.parameters == "q" || node.parameters == "k")
      linear->weight = {.kind = graph::Init::Kind::near_identity, .a = 1, .b = 0.02};
    else if (&node == &graph.nodes.back() && linear->weight.kind == graph::Init::Kind::constant)
      linear->weight = {};
  }
  return graph;
}

/// A mixer as it starts, and what it makes of tokens.
class Fresh {
 public:
  Fresh(const graph::Graph& graph, Index T, Context& context) : T_(T), context_(context), mixer_(graph, parameters_, "") {
    initialise(parameters_, kSeed);
  }
  [[nodiscard]] std::vector<LawCall> calls(std::vector<double>& x) {
    Tape<double> tape(context_, Record::no);
    const std::vector<Var<double>> taken = from_other_layers(tape, mixer_.graph(), T_, kSeed);
    return mixer_.law_calls(tape, input(tape, x), {.taken = taken});
  }
  [[nodiscard]] std::vector<double> outputs(std::vector<double>& x) {
    Tape<double> tape(context_, Record::no);
    const std::vector<Var<double>> taken = from_other_layers(tape, mixer_.graph(), T_, kSeed);
    const Var<double> y = mixer_.forward(tape, input(tape, x), {.taken = taken});
    return {y.value.data, y.value.data + y.value.size()};
  }

 private:
  [[nodiscard]] Var<double> input(Tape<double>& tape, std::vector<double>& x) const {
    return tape.input(contiguous(x.data(), {1, T_, 1, mixer_.graph().width}));
  }
  Index T_;
  Context& context_;
  Parameters<double> parameters_;
  Mixer<double> mixer_;
};

Json influence(Fresh& mixer, std::vector<double> x, Index T, Index width) {
  const std::vector<double> y = mixer.outputs(x), other = embedded({"another word"}, width);
  double mean = 0;
  for (const double v : y) mean += v * v / double(T);
  Json rows = Json::array();
  for (Index c = 0; c < T; ++c) {
    std::vector<double> changed = x;
    std::ranges::copy(other, changed.begin() + c * width);
    const std::vector<double> moved = mixer.outputs(changed);
    std::vector<double> row;
    for (Index t = 0; t < T; ++t) {
      double sum = 0;
      for (Index i = 0; i < width; ++i) sum += std::pow(moved[t * width + i] - y[t * width + i], 2);
      row.push_back(mean > 0 ? std::sqrt(sum / mean) : 0);
    }
    rows.push(rounded(row));
  }
  return rows;
}

Json options_json(const graph::Graph& graph, const std::vector<MixerOption>& options) {
  Json all = Json::array();
  for (std::size_t i = 0; i < options.size(); ++i)
    if (options[i].applies)
      all.push(Json::object({{"name", options[i].name},
                             {"value", graph.options[i].second},
                             {"default", options[i].fallback},
                             {"help", options[i].help},
                             {"choices", options[i].choices}}));
  return all;
}
}  // namespace

Json mixer_data(const MixerQuestion& question, Context& context) {
  const Preset& preset = find_preset(question.preset);
  const Place place{.width = question.width};
  const graph::Graph graph = recalling(build_mixer(preset, place, question.settings));
  const Index T = Index(question.words.size());
  require(T > 0, "mixers", "expected words, got none");
  require(graph::causal(graph), "mixers", "expected a causal mixer, got ", graph.preset, " of whole sequences");
  Fresh mixer(graph, T, context);
  std::vector<double> x = embedded(question.words, question.width);
  Json heads = Json::array();
  for (const LawCall& call : mixer.calls(x))
    for (const DsfView& view : dsf_views(call)) heads.push(head_json(call, view, T));
  return Json::object({{"preset", preset.name},
                       {"law", graph.law},
                       {"source", preset.source},
                       {"summary", preset.summary},
                       {"equations", equations(graph)},
                       {"options", options_json(graph, options_of(preset, place, question.settings))},
                       {"words", question.words},
                       {"heads", heads},
                       {"influence", influence(mixer, x, T, question.width)}});
}

Json all_mixers(const std::vector<std::string>& words, Context& context) {
  Json all = Json::array();
  for (const Preset* preset : presets())
    if (graph::causal(build_mixer(*preset, {.width = MixerQuestion{}.width})))
      all.push(mixer_data({.preset = std::string(preset->name), .words = words}, context));
  return all;
}

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace isomer
