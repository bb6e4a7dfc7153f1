// isomer check: every form of every law against the double reference, and every preset as a layer.
#include "isomer/laws/check.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/mixers/preset.h"
#include "isomer/nn/mixer_check.h"

namespace isomer::cli {

namespace {
struct Request {
  std::vector<std::string> names;
  bool all = false, json = false;
  int threads = 0;
};

/// What is checked: one or the other.
struct Subject {
  const Law* law = nullptr;
  const Preset* preset = nullptr;

  [[nodiscard]] std::string name() const { return std::string(law != nullptr ? law->name() : preset->name); }
  [[nodiscard]] std::vector<CheckRow> check(Context& context, const CheckPlan& plan) const {
    return law != nullptr ? isomer::check(*law, context, plan) : isomer::check(*preset, context, plan);
  }
};

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const Law* law : laws()) all.push_back({.law = law});
  for (const Preset* preset : presets()) all.push_back({.preset = preset});
  return all;
}

std::vector<Subject> chosen(const Request& request) {
  if (request.all && !request.names.empty()) throw Error("expected names of laws and presets or --all, got both");
  const std::vector<Subject> all = subjects();
  if (request.names.empty()) return all;
  std::vector<std::string> known;
  for (const Subject& subject : all) known.push_back(subject.name());
  std::vector<Subject> some;
  for (const std::string& name : request.names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) throw Error("unknown law or preset " + name + did_you_mean(name, known));
    some.push_back(all[std::size_t(found - known.begin())]);
  }
  return some;
}

void print_table(const std::vector<CheckRow>& rows) {
  Table table({"subject", "form", "type", "quantity", "error", "limit", "pass", "worst case"});
  for (const CheckRow& row : rows)
    table.add({row.subject, row.form, row.type, row.quantity, formatted("%.2e", row.error), formatted("%.2e", row.limit),
               row.pass ? "yes" : "NO", row.worst});
  table.print();
}

nlohmann::ordered_json as_json(const CheckRow& row) {
  return {{"subject", row.subject}, {"form", row.form},   {"type", row.type}, {"quantity", row.quantity},
          {"error", row.error},     {"limit", row.limit}, {"pass", row.pass}, {"worst", row.worst}};
}

int check_request(const Request& request) {
  const std::vector<Subject> some = chosen(request);
  Context context(request.threads);
  std::vector<CheckRow> rows;
  {
    const Progress progress;
    for (const Subject& subject : some) {
      const auto show = [&](int done, int total) {
        progress.show("check " + subject.name() + ": case " + std::to_string(done) + " of " + std::to_string(total));
      };
      const auto more = subject.check(context, {.progress = show});
      rows.insert(rows.end(), more.begin(), more.end());
    }
  }
  if (request.json) {
    auto all = nlohmann::ordered_json::array();
    for (const CheckRow& row : rows) all.push_back(as_json(row));
    print_json(context, all);
  } else {
    print_table(rows);
  }
  const auto red = std::count_if(rows.begin(), rows.end(), [](const CheckRow& row) { return !row.pass; });
  if (red > 0) throw RunFailed(std::to_string(red) + " of " + std::to_string(rows.size()) + " rows are beyond their limit");
  if (!request.json) std::cout << "all " << rows.size() << " rows are within their limits\n";
  return kDone;
}
}  // namespace

Command check_command(CLI::App& app) {
  auto request = std::make_shared<Request>();
  app.add_option("NAME", request->names, "Which laws and presets; all if none is named");
  app.add_flag("--all", request->all, "Every law and every preset");
  app.add_flag("--json", request->json, "Print one JSON object");
  add_threads(app, request->threads);
  app.footer(
      "Laws: every form against the double reference. Presets, as small layers with each of their options: streaming against\n"
      "forward, the forms of their laws, causality, their laws as dynamical systems (dsf), and gradients against differences.\n"
      "Each row is the largest error over all cases, as a share of the tensor's largest number; the status is 1 if one is\n"
      "beyond its limit.\nExample:\n  isomer check attention gla --json");
  return [request] { return check_request(*request); };
}

}  // namespace isomer::cli
