#include "isomer/mixers/catalogue.h"

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/base/format.h"
#include "isomer/laws/law.h"
#include "isomer/mixers/preset.h"

namespace isomer {

namespace {
PresetRow row_of(const Preset& preset, Index width, Index tokens) {
  PresetRow row{.preset = std::string(preset.name), .source = std::string(preset.source), .summary = std::string(preset.summary)};
  try {
    const graph::Graph graph = build_mixer(preset, {.width = width});
    row.law = graph.law;
    row.cost = cost_of(graph, tokens);
  } catch (const Error& problem) {
    // Its own name stands at the front of the row.
    const std::string text = problem.what(), own = row.preset + ": ";
    row.problem = text.starts_with(own) ? text.substr(own.size()) : text;
  }
  return row;
}
}  // namespace

std::vector<PresetRow> preset_rows(Index width, Index tokens) {
  std::vector<PresetRow> rows;
  for (const Preset* preset : presets()) rows.push_back(row_of(*preset, width, tokens));
  const auto order = [](const PresetRow& row) {
    const auto all = laws();
    return std::find_if(all.begin(), all.end(), [&](const Law* law) { return law->name() == row.law; }) - all.begin();
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const PresetRow& a, const PresetRow& b) { return order(a) < order(b); });
  return rows;
}

Json to_json(const PresetRow& row) {
  if (!row.problem.empty()) return Json::object({{"preset", row.preset}, {"source", row.source}, {"problem", row.problem}});
  // What grows with the sequence is listed for one token of it.
  const bool grows = row.cost.state_per_token > 0;
  return Json::object({{"preset", row.preset},
                       {"law", row.law},
                       {"source", row.source},
                       {"state_floats", grows ? row.cost.state_per_token : row.cost.state_floats},
                       {"state_grows", grows},
                       {"parameters", row.cost.parameters},
                       {"flops_per_token", row.cost.flops_per_token},
                       {"summary", row.summary}});
}

Cells cells_of(const PresetRow& row) {
  const bool known = row.problem.empty();
  const Cost& c = row.cost;
  const auto cell = [&](const std::string& text) { return known ? text : "-"; };
  return {{"preset", row.preset},
          {"law", cell(row.law)},
          {"state floats",
           cell(c.state_per_token > 0 ? std::to_string(c.state_per_token) + "/token" : std::to_string(c.state_floats))},
          {"parameters", cell(std::to_string(c.parameters))},
          {"flops/token", cell(formatted("%.0f", c.flops_per_token))},
          {"source", known ? row.source : row.problem}};
}

}  // namespace isomer
