// The values of what the equations of a mixer name.
#include <algorithm>
#include <cmath>
#include <map>

#include "isomer/base/error.h"
#include "isomer/explore/looks.h"
#include "isomer/mixers/dsf_state.h"

namespace isomer {

namespace {
using Terms = std::map<std::string, Json, std::less<>>;

/// {"heads", "size", "values" [heads, size]} of a token; a value that is the same for all tokens has one row.
Json value_term(const Var<double>& var, Index token) {
  const Index H = var.dim(2), D = var.dim(3), t = std::min(token, var.dim(1) - 1);
  Json heads = Json::array();
  for (Index h = 0; h < H; ++h) {
    std::vector<double> row;
    for (Index d = 0; d < D; ++d) row.push_back(var.value(0, t, h, d));
    heads.push(rounded(row));
  }
  return Json::object({{"heads", H}, {"size", D}, {"values", heads}});
}

/// {"shape", "norm", "least", "largest"}.
Json parameter_term(const Parameter<double>& parameter) {
  double sum = 0, least = 0, largest = 0;
  const auto values = parameter.values();
  if (!values.empty()) least = largest = values[0];
  for (const double x : values) {
    sum += x * x;
    least = std::min(least, x), largest = std::max(largest, x);
  }
  return Json::object({{"shape", parameter.spec.shape},
                       {"norm", rounded(std::sqrt(sum))},
                       {"least", rounded(least)},
                       {"largest", rounded(largest)}});
}

/// How equations call a parameter, if it is one of the layer: W_q and w_q for q.weight, b_q for q.bias, w_q for q.
std::vector<std::string> names_of(std::string name, const std::string& prefix) {
  if (!name.starts_with(prefix)) return {};
  name.erase(0, prefix.size());
  const auto without = [&](std::string_view end) { return name.substr(0, name.size() - end.size()); };
  if (name.ends_with(".weight")) return {"W_" + without(".weight"), "w_" + without(".weight")};
  if (name.ends_with(".bias")) return {"b_" + without(".bias")};
  return {"w_" + name};
}

/// Inputs of a law go by the names that its equations have for them.
void add_law(const graph::Node& node, std::span<const Var<double>> values, Index token, Terms& terms) {
  const auto* law = std::get_if<graph::Law>(&node.work);
  if (law == nullptr) return;
  for (std::size_t i = 0; i < law->roles.size(); ++i) {
    const Var<double>& var = values[std::size_t(node.inputs[i])];
    const std::string name(law->law->symbol(law->law->law().inputs()[law->places[i]], law->given));
    if (var.value.present()) terms[name] = value_term(var, token);
  }
}

/// What the head keeps of them.
void add_state(const Sight::Head& head, Index token, Terms& terms) {
  const Dsf system = head.system();
  const StateMoment moment = state_moment(system, head.written(), token);
  double sum = 0;
  for (std::size_t i = 0; i < moment.kept.size(); ++i) sum += std::norm(moment.kept[i] + moment.written[i]);
  const Json state = Json::object({{"shape", Json::Array{system.features, system.channels}}, {"norm", rounded(std::sqrt(sum))}});
  for (const char* name : {"S", "h"}) terms.emplace(name, state);
}

/// A row of its map.
void add_weights(const Sight::Head& head, Index token, Index T, Terms& terms) {
  const DsfWeights weights = head.weights();
  const double* row = weights.values.data() + token * T;
  const std::vector<double> seen(row, row + (head.causal() ? token + 1 : T));
  terms.emplace("w_ts", Json::object({{"heads", 1}, {"size", seen.size()}, {"values", Json::Array{rounded(seen)}}}));
}
}  // namespace

Json terms_json(const Sight& sight, const Where& where, Context& context) {
  const Subject& subject = sight.subject();
  require(where.token >= 0 && where.token < subject.T(), "token", "expected one below ", subject.T(), ", got ", where.token);
  const Sight::Head& head = sight.head(where.layer, where.head);
  const Mixer<double>& mixer = subject.mixer(where.layer);
  Terms terms;
  for (const Parameter<double>& parameter : subject.parameters().all())
    for (const std::string& name : names_of(parameter.name(), subject.prefix(where.layer)))
      terms.emplace(name, parameter_term(parameter));
  Tape<double> tape(context, Record::no);
  subject.at(where.layer, tape, [&](Var<double> x, std::span<const Var<double>> taken) {
    const std::span<const Var<double>> values = mixer.values(tape, x, {.taken = taken});
    const auto& nodes = mixer.graph().nodes;
    terms["x"] = value_term(x, where.token);
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (!nodes[i].name.empty() && values[i].value.present()) terms[nodes[i].name] = value_term(values[i], where.token);
    for (const graph::Node& node : nodes) add_law(node, values, where.token, terms);
  });
  if (head.causal()) add_state(head, where.token, terms);
  add_weights(head, where.token, subject.T(), terms);
  Json all = Json::object();
  for (auto& [name, term] : terms) all.set(name, std::move(term));
  return Json::object({{"token", where.token}, {"terms", all}});
}

}  // namespace isomer
