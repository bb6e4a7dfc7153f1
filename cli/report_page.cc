// isomer report: what the study found, or the curves of runs, as one file for a browser.
#include <algorithm>
#include <filesystem>
#include <map>

#include "cli/browser.h"
#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/context.h"
#include "isomer/base/error.h"
#include "isomer/explore/mixer_data.h"
#include "isomer/io/files.h"
#include "isomer/io/text.h"
#include "isomer/report/page.h"
#include "isomer/report/run_data.h"
#include "isomer/report/study_data.h"
#include "isomer/train/run_summary.h"

namespace isomer::cli {

namespace {
namespace fs = std::filesystem;

// Words that come again show what a mixer recalls.
constexpr const char* kSentence = "the cat sat on the mat and the dog sat by the cat";
constexpr const char *kResults = "results", *kKept = "study/results";

struct Request {
  std::vector<std::string> names;
  std::string output = "report.html", kept;
  bool open = false;
};

/// A page's data, what was left out, and a line about it.
struct Report {
  Json data;
  std::vector<std::string> problems;
  std::string about;
};

std::string counted(std::size_t n, const char* one, const char* many) { return std::to_string(n) + " " + (n == 1 ? one : many); }

std::string counts_of(const StudyFiles& files) {
  std::string text;
  for (const auto& [name, results] : {std::pair("measured here", &files.results), std::pair("kept", &files.kept)}) {
    if (results->empty()) continue;
    std::map<std::string_view, std::size_t> verdicts;
    for (const study::Result& result : *results) ++verdicts[name_of(result.decision.verdict)];
    text += (text.empty() ? "" : "; ") + counted(results->size(), "claim", "claims") + " " + name + " (";
    std::string inside;
    for (const auto& [verdict, n] : verdicts)
      inside += (inside.empty() ? "" : ", ") + std::to_string(n) + " " + std::string(verdict);
    text += inside + ")";
  }
  return text.empty() ? "no results" : text;
}

Report study_report(const std::string& folder, const std::string& kept) {
  std::error_code none;
  // The kept results by themselves have nothing beside them.
  const bool only_kept = !folder.empty() && !kept.empty() && fs::equivalent(folder, kept, none);
  StudyFiles files = read_study(only_kept ? "" : folder, kept);
  Context context(1);
  files.mixers = all_mixers(words_of(kSentence), context);
  return {to_json(files), files.problems, counts_of(files)};
}

Report runs_report(const std::vector<std::string>& runs) {
  RunData found = run_data(runs);
  return {std::move(found.data), std::move(found.problems), counted(runs.size(), "run", "runs")};
}

bool has_results(const std::string& folder) {
  std::error_code none;
  return std::ranges::any_of(fs::directory_iterator(folder, none),
                             [](const fs::directory_entry& entry) { return entry.path().extension() == ".json"; });
}

Report report_of(const Request& request) {
  const std::string kept = !request.kept.empty() ? request.kept : is_folder(kKept) ? kKept : "";
  if (request.names.empty()) {
    const std::string folder = is_folder(kResults) ? kResults : "";
    if (folder.empty() && kept.empty())
      throw Error(std::string("expected a folder of results or of runs: there is no ") + kResults +
                  " here, which isomer study writes");
    return study_report(folder, kept);
  }
  std::vector<std::string> runs;
  for (const std::string& name : request.names) {
    const std::vector<std::string> below = runs_below(name);
    if (below.empty() && request.names.size() == 1 && has_results(name)) return study_report(name, kept);
    if (below.empty()) throw Error(name + ": expected results of a study or runs, got neither");
    runs.insert(runs.end(), below.begin(), below.end());
  }
  return runs_report(runs);
}

int report_request(const Request& request) {
  const Report report = report_of(request);
  try {
    write_text(request.output, page_of(report.data));
  } catch (const Error& problem) {
    throw RunFailed(problem.what());
  }
  std::cout << request.output << ": " << report.about << '\n';
  for (const std::string& problem : report.problems) std::cerr << "isomer report: left out " << problem << '\n';
  if (request.open && !opened_in_browser(whole_path(request.output)))
    throw RunFailed("no browser could be opened by xdg-open: open " + request.output + " yourself");
  return report.problems.empty() ? kDone : kFailed;
}
}  // namespace

Command report_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("folders", request->names, "Results of a study, or runs and sweeps [results]");
  options.add("--output", request->output, "The file to write [report.html]").value("FILE");
  options.add("--kept", request->kept, "Results to show beside those of the study [study/results, if it is there]").value("DIR");
  options.flag("--open", request->open, "Open it in a browser");
  options.footer(
      "One HTML file that needs no network: verdicts, figures and numbers of a study, or the curves of runs beside each other.\n"
      "Files that cannot be read are left out and named; the status is 1 then.\n\n"
      "Example:\n  isomer study --quick && isomer report --open\n  isomer report runs/a runs/b --output curves.html");
  return [request] { return report_request(*request); };
}

}  // namespace isomer::cli
