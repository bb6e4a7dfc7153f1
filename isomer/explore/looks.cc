#include "isomer/explore/looks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "isomer/base/error.h"
#include "isomer/laws/bound_law.h"
#include "isomer/mixers/dsf_state.h"
#include "isomer/mixers/equations.h"
#include "isomer/mixers/whole_map.h"

namespace isomer {

namespace {
constexpr Index kMostEigenvalues = 64;  // features of a state whose Λ is not diagonal: a matrix's eigenvalues take their cube

double four_digits(double x) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, x, std::chars_format::scientific, 3).ptr;
  double value = 0;
  std::from_chars(text, end, value);
  return value;
}

const char* name_of(MixerOption::Kind kind) {
  switch (kind) {
    case MixerOption::Kind::size: return "size";
    case MixerOption::Kind::number: return "number";
    case MixerOption::Kind::limit: return "limit";
    case MixerOption::Kind::flag: return "flag";
    case MixerOption::Kind::choice: return "choice";
  }
  return "";
}

Index heads_of(const LawCall& call) {
  const auto& shape = call.outputs.begin()->second.shape();
  return shape.size() == 4 ? shape[2] : 1;
}

/// What is known of a head before anything is computed.
Json head_json(const Sight::Head& head) { return Json::object({{"law", head.call->law}, {"head", head.head}}); }

void require_state(const Sight::Head& head) {
  require(head.causal(), "state", "expected a mixer that keeps one, got one that sees whole sequences");
}

void require_token(const Sight& sight, const Where& where) {
  const Index T = sight.subject().T();
  require(where.token >= 0 && where.token < T, "token", "expected one below ", T, ", got ", where.token);
}

bool has_eigenvalues(const Dsf& system) {
  return system.features <= kMostEigenvalues ||
         std::ranges::all_of(system.tokens, [](const DsfToken& token) { return token.left.empty(); });
}

/// Least and largest of what `of` makes of the values.
Json range_of(const std::vector<Complex>& values, double (*of)(const Complex&)) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Complex& x : values) {
    low = std::min(low, of(x));
    high = std::max(high, of(x));
  }
  return Json::Array{rounded(low), rounded(high)};
}
Json options_json(const Subject& subject) {
  const auto& resolved = subject.mixer(0).graph().options;
  const std::vector<MixerOption> options = subject.options();
  Json all = Json::array();
  for (std::size_t i = 0; i < options.size(); ++i)
    if (options[i].applies)
      all.push(Json::object({{"name", options[i].name},
                             {"value", resolved[i].second},
                             {"default", options[i].fallback},
                             {"help", options[i].help},
                             {"kind", name_of(options[i].kind)},
                             {"least", options[i].least},
                             {"choices", options[i].choices}}));
  return all;
}
}  // namespace

Json rounded(double x) { return std::isfinite(x) ? Json(four_digits(x)) : Json(); }

Json rounded(const std::vector<double>& all) {
  Json list = Json::array();
  for (const double x : all) list.push(rounded(x));
  return list;
}

Sight::Sight(std::unique_ptr<const Subject> subject, Context& context) : subject_(std::move(subject)) {
  calls_ = subject_->calls(context);
  for (Index layer = 0; layer < subject_->layers(); ++layer) {
    heads_.emplace_back();
    for (const LawCall& call : calls_[std::size_t(layer)])
      for (Index h = 0; h < heads_of(call); ++h) heads_.back().push_back({&call, layer, h});
  }
}

const std::vector<Sight::Head>& Sight::heads(Index layer) const {
  require(layer >= 0 && layer < subject_->layers(), "layer", "expected one below ", subject_->layers(), ", got ", layer);
  return heads_[std::size_t(layer)];
}

const Sight::Head& Sight::head(Index layer, Index head) const {
  const std::vector<Head>& all = heads(layer);
  require(head >= 0 && head < Index(all.size()), "head", "expected one below ", all.size(), ", got ", head);
  return all[std::size_t(head)];
}

bool Sight::Head::causal() const { return find_law(call->law).bind(call->settings)->causal(); }

DsfWeights Sight::Head::weights() const {
  if (causal()) return weights_of(system());
  return {.values = whole_map(find_law(call->law), call->inputs, call->settings, call->outputs, head), .horizon = {}};
}

Json view_of(const Sight::Head& head) {
  const bool causal = head.causal();
  const Dsf system = causal ? head.system() : Dsf{};
  const DsfWeights weights = causal ? weights_of(system) : head.weights();
  const Index T = causal ? system.T : head.call->outputs.begin()->second.shape()[1];
  Json matrix = Json::array();
  for (Index t = 0; t < T; ++t) {
    const double* row = weights.values.data() + t * T;
    matrix.push(rounded(std::vector<double>(row, row + (causal ? t + 1 : T))));
  }
  Json view = head_json(head);
  view.set("causal", causal);
  view.set("channels", system.channels);
  view.set("features", system.features);
  view.set("averaged", system.groups > 1);
  view.set("matrix", std::move(matrix));
  view.set("horizon", causal ? rounded(weights.horizon.tokens) : Json());
  view.set("unfinished", causal ? rounded(weights.horizon.unfinished) : Json());
  return view;
}

Json curves_of(const Sight::Head& head) {
  require_state(head);
  const Dsf system = head.system();
  const StateCurve curve = state_curve(system, head.written());
  Json sizes, angles;
  if (has_eigenvalues(system)) {
    sizes = Json::array(), angles = Json::array();
    for (Index t = 0; t < system.T; ++t) {
      const std::vector<Complex> values = eigenvalues_at(system, t);
      sizes.push(range_of(values, [](const Complex& x) { return std::abs(x); }));
      angles.push(range_of(values, [](const Complex& x) { return std::arg(x); }));
    }
  }
  return Json::object({{"sizes", sizes},
                       {"angles", angles},
                       {"norm", rounded(curve.norm)},
                       {"rank", rounded(curve.rank)},
                       {"kept", rounded(curve.kept)},
                       {"written", rounded(curve.written)}});
}

Json eigenvalues_of(const Dsf& system, Index token) {
  if (!has_eigenvalues(system)) return {};
  Json all = Json::array();
  for (const Complex& x : eigenvalues_at(system, token)) all.push(Json::Array{rounded(x.real()), rounded(x.imag())});
  return all;
}

Json layer_json(const Subject& subject, Index layer) {
  const graph::Graph& graph = subject.mixer(layer).graph();
  Json changed = Json::object();
  for (const auto& [name, value] : graph.changed) changed.set(name, value);
  const Preset& preset = find_preset(graph.preset);
  return Json::object({{"preset", preset.name},
                       {"law", graph.law},
                       {"source", preset.source},
                       {"summary", preset.summary},
                       {"equations", equations(graph)},
                       {"options", options_json(subject)},
                       {"changed", changed},
                       {"words", subject.words()}});
}

Json view_json(const Sight& sight, const Where& where) {
  const Subject& subject = sight.subject();
  const Sight::Head& head = sight.head(where.layer, where.head);
  Json layers = Json::array();
  for (Index layer = 0; layer < subject.layers(); ++layer) {
    Json heads = Json::array();
    for (const Sight::Head& h : sight.heads(layer)) heads.push(head_json(h));
    layers.push(Json::object({{"preset", subject.mixer(layer).graph().preset}, {"heads", heads}}));
  }
  Json all = layer_json(subject, where.layer);
  all.set("layers", layers);
  all.set("layer", where.layer);
  all.set("head", where.head);
  all.set("view", view_of(head));
  return all;
}

Json maps_json(const Sight& sight, const Where& where) {
  Json heads = Json::array();
  for (const Sight::Head& head : sight.heads(where.layer)) heads.push(view_of(head));
  return Json::object({{"layer", where.layer}, {"heads", heads}});
}

Json curves_json(const Sight& sight, const Where& where) { return curves_of(sight.head(where.layer, where.head)); }

Json state_json(const Sight& sight, const Where& where) {
  require_token(sight, where);
  const Sight::Head& head = sight.head(where.layer, where.head);
  require_state(head);
  const Dsf system = head.system();
  const StateMoment moment = state_moment(system, head.written(), where.token);
  const auto is_complex = [](const std::vector<Complex>& all) {
    return std::ranges::any_of(all, [](const Complex& x) { return x.imag() != 0; });
  };
  const bool complex = is_complex(moment.kept) || is_complex(moment.written);
  const auto rows = [&](const std::vector<Complex>& all) {
    Json list = Json::array();
    for (Index c = 0; c < system.channels; ++c) {
      std::vector<double> row;
      for (Index f = 0; f < system.features; ++f) {
        const Complex x = all[c * system.features + f];
        row.push_back(complex ? std::abs(x) : x.real());
      }
      list.push(rounded(row));
    }
    return list;
  };
  return Json::object({{"token", where.token},
                       {"complex", complex},
                       {"kept", rows(moment.kept)},
                       {"written", rows(moment.written)},
                       {"eigenvalues", eigenvalues_of(system, where.token)}});
}

Json influence_json(const Sight& sight, const Where& where, Context& context) {
  require_token(sight, where);
  const Subject& subject = sight.subject();
  const std::string other = where.other ? *where.other : subject.another_word(where.token);
  return Json::object({{"token", where.token},
                       {"word", subject.words()[std::size_t(where.token)]},
                       {"other", other},
                       {"moved", rounded(influence(subject, {.token = where.token, .word = other}, context))}});
}

}  // namespace isomer
