// isomer check: every form of every law against the double reference, and every preset as a layer.
#include "isomer/bench/check.h"

#include <algorithm>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"

namespace isomer::cli {

namespace {
struct Request {
  std::vector<std::string> names;
  TableOutput output;
  bool all = false;
  int threads = 0;
};

int check_request(const Request& request) {
  if (request.all && !request.names.empty()) throw Error("expected names of laws and presets or --all, got both");
  Context context(request.threads);
  std::vector<CheckRow> rows;
  {
    const Progress progress;
    rows = check_named(request.names, context, progress.monitor());
  }
  print_rows(context, rows, request.output);
  const auto red = std::ranges::count_if(rows, [](const CheckRow& row) { return !row.pass; });
  if (red > 0) throw RunFailed(std::to_string(red) + " of " + std::to_string(rows.size()) + " rows are beyond their limit");
  if (request.output.for_people()) std::cout << "all " << rows.size() << " rows are within their limits\n";
  return kDone;
}
}  // namespace

Command check_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("NAME", request->names, "Which laws and presets; all if none is named");
  options.flag("--all", request->all, "Every law and every preset");
  options.table(request->output);
  options.threads(request->threads);
  options.footer(
      "Laws: every form against the double reference. Presets, as small layers with each of their options: streaming against\n"
      "forward, the forms of their laws, causality, their laws as dynamical systems (dsf), and gradients against differences.\n"
      "Each row is the largest error over all cases, as a share of the tensor's largest number; the status is 1 if one is\n"
      "beyond its limit.\nExample:\n  isomer check attention gla --json");
  return [request] { return check_request(*request); };
}

}  // namespace isomer::cli
