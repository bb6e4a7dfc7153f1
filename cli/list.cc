// isomer list: every preset and what a layer of it costs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/laws/law.h"
#include "isomer/mixers/cost.h"
#include "isomer/mixers/preset.h"

namespace isomer::cli {

namespace {
struct Request {
  Index width = 256, tokens = 1024;
  bool json = false;
};

struct Row {
  const Preset* preset;
  std::string law, problem;  // problem: why it cannot be built at this width
  Cost cost = {};
};

Row row_of(const Preset& preset, const Request& request) {
  try {
    const graph::Graph graph = build_mixer(preset, {.width = request.width});
    return {&preset, graph.law, "", cost_of(graph, request.tokens)};
  } catch (const Error& problem) {
    // Its own name stands at the front of the row.
    const std::string text = problem.what(), own = std::string(preset.name) + ": ";
    return {&preset, "", text.starts_with(own) ? text.substr(own.size()) : text};
  }
}

std::vector<Row> rows_of(const Request& request) {
  std::vector<Row> rows;
  for (const Preset* preset : presets()) rows.push_back(row_of(*preset, request));
  const auto order = [](const Row& row) {
    const auto all = laws();
    return std::find_if(all.begin(), all.end(), [&](const Law* law) { return law->name() == row.law; }) - all.begin();
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return order(a) < order(b); });
  return rows;
}

nlohmann::ordered_json as_json(const Row& row) {
  if (!row.problem.empty()) return {{"preset", row.preset->name}, {"source", row.preset->source}, {"problem", row.problem}};
  // What grows with the sequence is listed for one token of it.
  const bool grows = row.cost.state_per_token > 0;
  return {{"preset", row.preset->name},
          {"law", row.law},
          {"source", row.preset->source},
          {"state_floats", grows ? row.cost.state_per_token : row.cost.state_floats},
          {"state_grows", grows},
          {"parameters", row.cost.parameters},
          {"flops_per_token", row.cost.flops_per_token},
          {"summary", row.preset->summary}};
}

void print_table(const std::vector<Row>& rows) {
  Table table({"preset", "law", "state floats", "parameters", "flops/token", "source"});
  for (const Row& row : rows) {
    if (!row.problem.empty()) {
      table.add({std::string(row.preset->name), "-", "-", "-", "-", row.problem});
      continue;
    }
    const Cost& c = row.cost;
    table.add({std::string(row.preset->name), row.law,
               c.state_per_token > 0 ? std::to_string(c.state_per_token) + "/token" : std::to_string(c.state_floats),
               std::to_string(c.parameters), formatted("%.0f", c.flops_per_token), std::string(row.preset->source)});
  }
  table.print();
}

int list_request(const Request& request) {
  const std::vector<Row> rows = rows_of(request);
  if (request.json) {
    auto all = nlohmann::ordered_json::array();
    for (const Row& row : rows) all.push_back(as_json(row));
    print_json(Context(1), all);
    return kDone;
  }
  print_table(rows);
  std::cout << "One layer of width " << request.width << ", flops of a token in a sequence of " << request.tokens
            << ". isomer show PRESET says more.\n";
  return kDone;
}
}  // namespace

Command list_command(CLI::App& app) {
  auto request = std::make_shared<Request>();
  app.add_option("--width", request->width, "Channels of the layer")->check(CLI::Range(1, 1 << 20))->type_name("N");
  app.add_option("--T", request->tokens, "Tokens of a sequence, for flops")->check(CLI::Range(1, 1 << 20))->type_name("N");
  app.add_flag("--json", request->json, "Print one JSON object");
  app.footer("A state that grows with the sequence is listed for each token of it.\nExample:\n  isomer list --width 512");
  return [request] { return list_request(*request); };
}

}  // namespace isomer::cli
