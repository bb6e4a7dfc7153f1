// isomer check: every form of every law against the double reference, and every preset as a layer.
#include "isomer/bench/check.h"

#include <algorithm>
#include <iterator>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"

namespace isomer::cli {

namespace {
struct Request {
  std::vector<std::string> names;
  TableOutput output;
  bool all = false, all_rows = false;
  int threads = 0;
};

/// A line for each law and preset: of its rows the one that is nearest to its limit, or furthest beyond.
std::string summary_of(const std::vector<CheckRow>& rows) {
  const auto share = [](const CheckRow& row) { return row.error == 0 ? 0 : row.error / row.limit; };
  std::vector<std::vector<std::string>> lines{{"subject", "rows", "pass", "error/limit", "at its largest in"}};
  for (auto first = rows.begin(); first != rows.end();) {
    const auto last = std::find_if(first, rows.end(), [&](const CheckRow& row) { return row.subject != first->subject; });
    const CheckRow& worst =
        *std::max_element(first, last, [&](const CheckRow& a, const CheckRow& b) { return share(a) < share(b); });
    lines.push_back({first->subject, std::to_string(last - first),
                     std::to_string(std::count_if(first, last, [](const CheckRow& row) { return row.pass; })),
                     formatted("%.3f", share(worst)),
                     worst.quantity + ", " + worst.form + ", " + worst.type + ": " + worst.worst});
    first = last;
  }
  return aligned(lines);
}

int check_request(const Request& request) {
  if (request.all && !request.names.empty()) throw Error("expected names of laws and presets or --all, got both");
  Context context(request.threads);
  std::vector<CheckRow> rows;
  {
    const Progress progress;
    rows = check_named(request.names, context, progress.monitor());
  }
  std::vector<CheckRow> red_rows;
  std::ranges::copy_if(rows, std::back_inserter(red_rows), [](const CheckRow& row) { return !row.pass; });
  const std::size_t red = red_rows.size();
  // Of what is beyond its limit, everything.
  if (!request.output.for_people() || request.all_rows)
    print_rows(context, rows, request.output);
  else
    std::cout << summary_of(rows) << (red > 0 ? "\n" + table_text(red_rows) : "");
  if (red > 0) throw RunFailed(std::to_string(red) + " of " + std::to_string(rows.size()) + " rows are beyond their limit");
  if (request.output.for_people()) std::cout << "all " << rows.size() << " rows are within their limits\n";
  return kDone;
}
}  // namespace

Command check_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("NAME", request->names, "Which laws and presets; all if none is named");
  options.flag("--all", request->all, "Every law and every preset");
  options.flag("--all-rows", request->all_rows, "Print every row, as --json and --csv do, not a summary");
  options.table(request->output);
  options.threads(request->threads);
  options.footer(
      "Laws: every form against the double reference. Presets, as small layers with each of their options: streaming against\n"
      "forward, the forms of their laws, causality, their laws as dynamical systems (dsf), and gradients against differences.\n"
      "Each row is the largest error over all cases, as a share of the tensor's largest number; the status is 1 if one is\n"
      "beyond its limit. The summary has a line for each law and preset, and the rows that are beyond their limits.\n"
      "Example:\n  isomer check attention gla --all-rows");
  return [request] { return check_request(*request); };
}

}  // namespace isomer::cli
