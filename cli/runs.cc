// isomer runs: a table of runs with how they stand and what they ended with.
#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/context.h"
#include "isomer/train/run_summary.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string root = "runs";
  TableOutput output;
};

int runs_request(const Request& request) {
  std::vector<RunSummary> rows;
  for (const std::string& path : runs_below(request.root)) rows.push_back(summary_of(path));
  print_rows(Context(1), rows, request.output);
  return kDone;
}
}  // namespace

Command runs_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("folder", request->root, "Where to look, at any depth [runs]");
  options.table(request->output);
  options.footer("Example:\n  isomer runs");
  return [request] { return runs_request(*request); };
}

}  // namespace isomer::cli
