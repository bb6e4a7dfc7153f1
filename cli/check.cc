// isomer check: every form of every law against the double reference.
#include "isomer/laws/check.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"

namespace isomer::cli {

namespace {
struct Request {
  std::vector<std::string> laws;
  bool all = false, json = false;
  int threads = 0;
};

std::vector<const Law*> chosen(const Request& request) {
  if (request.all && !request.laws.empty()) throw Error("expected names of laws or --all, got both");
  std::vector<const Law*> some;
  for (const std::string& name : request.laws) some.push_back(&find_law(name));
  if (request.laws.empty()) some.assign(laws().begin(), laws().end());
  return some;
}

void print_table(const std::vector<CheckRow>& rows) {
  Table table({"law", "form", "type", "quantity", "error", "limit", "pass", "worst case"});
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
  const std::vector<const Law*> some = chosen(request);
  Context context(request.threads);
  std::vector<CheckRow> rows;
  {
    const Progress progress;
    for (const Law* law : some) {
      const auto show = [&](int done, int total) {
        progress.show("check " + std::string(law->name()) + ": case " + std::to_string(done) + " of " + std::to_string(total));
      };
      const auto more = check(*law, context, {.progress = show});
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
  app.add_option("LAW", request->laws, "Which laws; all if none is named");
  app.add_flag("--all", request->all, "Every law");
  app.add_flag("--json", request->json, "Print one JSON object");
  add_threads(app, request->threads);
  app.footer(
      "Each row is the largest error over the law's cases, as a share of the tensor's largest number; the status is 1 if one is\n"
      "beyond its limit.\nExample:\n  isomer check attention scalar_decay --json");
  return [request] { return check_request(*request); };
}

}  // namespace isomer::cli
