// isomer study: the claims of the sources, measured here.
#include "isomer/study/study.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/report.h"

namespace isomer::cli {

namespace {
using namespace study;

struct Request {
  std::vector<std::string> names;
  bool list = false, quick = false, full = false, compare = false, retell = false;
  Index seeds = 0;
  int jobs = 0;
  std::string out = "results", kept = "study/results";
  TableOutput output;
};

struct ClaimRow {
  const Claim* claim = nullptr;
};
Json to_json(const ClaimRow& row) { return study::to_json(*row.claim); }

int list_claims(const Request& request) {
  std::vector<ClaimRow> rows;
  std::string text, source;
  for (const Claim* claim : find_claims(request.names)) {
    rows.push_back({claim});
    if (claim->source() != source) {
      source = claim->source();
      const auto of = std::ranges::find(sources(), source, &Source::id);
      text += (text.empty() ? "" : "\n") + of->title + "\n";
    }
    text += "  " + claim->id + (claim->trained() ? "  (trained)" : "") + "\n    " + claim->statement +
            "\n    measured: " + claim->quantity + "\n    rule: " + claim->rule.text + "\n";
  }
  print_rows(Context(1), rows_json(rows), request.output, text);
  return kDone;
}

/// What the source printed, or that it gave a direction only.
std::string published_text(const Result& result) {
  std::string text;
  for (const Published& p : result.published)
    if (p.value) text += (text.empty() ? "" : "; ") + p.name + " " + study::text_of(*p.value);
  return text.empty() ? result.published.empty() ? "" : result.published.front().name : text;
}

struct ResultRow {
  const Result* result = nullptr;
};
Json to_json(const ResultRow& row) { return study::to_json(*row.result); }

/// The first clause, as far as there is room: the whole sentence is in the result.
std::string shortened(const std::string& text, std::size_t most) {
  const std::string first = text.substr(0, text.find("; "));
  return first.size() <= most ? first : first.substr(0, most - 3) + "...";
}

std::string table_of(const std::vector<Outcome>& outcomes) {
  std::vector<std::vector<std::string>> rows{{"claim", "ours", "published", "verdict"}};
  for (const Outcome& outcome : outcomes) {
    const Result& result = outcome.result;
    const bool run = outcome.failure.empty();
    rows.push_back({outcome.claim->id, shortened(run ? result.decision.why : outcome.failure, 62),
                    shortened(published_text(result), 44), run ? std::string(name_of(result.decision.verdict)) : "not run"});
  }
  return aligned(rows);
}

/// "1 fails, 3 holds"
std::string counted(const std::vector<std::string_view>& words) {
  std::map<std::string_view, int> counts;
  for (const std::string_view word : words) ++counts[word];
  std::string text;
  for (const auto& [name, count] : counts) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(name);
  return text;
}

std::string counts_of(const std::vector<Outcome>& outcomes) {
  std::vector<std::string_view> words;
  for (const Outcome& outcome : outcomes)
    words.push_back(outcome.failure.empty() ? name_of(outcome.result.decision.verdict) : "could not be run");
  return counted(words);
}

/// Why claims could not be run, in full.
std::string failures_of(const std::vector<Outcome>& outcomes) {
  std::string text;
  for (const Outcome& outcome : outcomes)
    if (!outcome.failure.empty()) text += outcome.claim->id + " could not be run: " + outcome.failure + "\n";
  return text;
}

std::string line_of(const StudyProgress& now) {
  std::string text = std::to_string(now.claims_done) + "/" + std::to_string(now.claims) + " claims";
  if (now.cells > 0) text += "  " + std::to_string(now.cells_done) + "/" + std::to_string(now.cells) + " runs";
  if (now.cells_kept > 0) text += " (" + std::to_string(now.cells_kept) + " kept from before)";
  if (now.share > 0.02) text += "  left " + clock_of(now.seconds_left);
  return text;
}

/// "dsf 17 min, inline 9 min": by source.
std::string minutes_of(const std::vector<Result>& results) {
  std::string text;
  for (const auto& [source, sum] : study::seconds_by_source(results))
    text += (text.empty() ? "" : ", ") + source + " " + std::to_string(std::lround(sum / 60)) + " min";
  return text;
}

/// Today's results beside those that are kept.
int compare_results(const Request& request) {
  const std::vector<Result> today = read_results(request.out), kept = read_results(request.kept);
  std::vector<std::vector<std::string>> rows{{"claim", "quantity", "here", "kept", "verdict here", "kept"}};
  bool same = true;
  for (const Result& result : today) {
    const auto before = std::ranges::find(kept, result.id, &Result::id);
    if (before == kept.end()) continue;
    same = same && before->decision.verdict == result.decision.verdict;
    for (const Result::Measured& m : result.measured) {
      const auto old = std::ranges::find(before->measured, m.name, &Result::Measured::name);
      if (old == before->measured.end()) continue;
      rows.push_back({result.id, m.name, study::text_of(m.interval), study::text_of(old->interval),
                      std::string(name_of(result.decision.verdict)), std::string(name_of(before->decision.verdict))});
    }
  }
  std::vector<std::string_view> words;
  for (const Result& result : kept) words.push_back(name_of(result.decision.verdict));
  std::cout << aligned(rows) << kept.size() << " claims are kept in " << request.kept << ": " << counted(words) << "\n"
            << "which took one core: " << minutes_of(kept) << "\n"
            << (same ? "every verdict is the kept one\n" : "some verdicts differ from the kept ones\n");
  return same ? kDone : kFailed;
}

/// Writes the results of --out again with the words of the claims as they are; numbers and verdicts stay.
int retell_results(const Request& request) {
  std::size_t changed = 0;
  std::string left_out;
  for (const Result& result : read_results(request.out)) {
    const std::vector<const Claim*> all = find_claims({});
    const auto claim = std::ranges::find(all, result.id, &Claim::id);
    if (claim == all.end()) {
      left_out += result.id + ": no such claim any more\n";
      continue;
    }
    try {
      const Result now = retold(result, **claim);
      if (study::to_json(now).dump() == study::to_json(result).dump()) continue;
      write_result(request.out, now);
      ++changed;
    } catch (const Error& problem) {
      left_out += std::string(problem.what()) + "\n";
    }
  }
  std::cout << changed << " results of " << request.out << " have new words; no number and no verdict is another\n";
  std::cerr << left_out;
  return left_out.empty() ? kDone : kFailed;
}

int study_request(const Request& request) {
  if (request.list) return list_claims(request);
  if (request.retell) return retell_results(request);
  if (request.compare) return compare_results(request);
  const Mode mode = request.full ? Mode::full : Mode::quick;
  const std::vector<const Claim*> claims = find_claims(request.names, mode);
  const OutlivesItsReader outlives;
  const std::atomic<bool>& stop = watch_for_interrupt();
  const Progress progress;
  const StudyOptions options{.budget = {.mode = mode, .seeds = request.seeds > 0 ? request.seeds : usual_seeds(mode)},
                             .jobs = request.jobs,
                             .folder = request.out};
  const std::vector<Outcome> all = run_study(claims, options, [&](const StudyProgress& now) {
    progress.show(line_of(now));
    return !stop.load();
  });
  progress.show("");
  std::vector<ResultRow> rows;
  for (const Outcome& outcome : all)
    if (outcome.failure.empty()) rows.push_back({&outcome.result});
  const bool people = request.output.for_people();
  if (!people || !all.empty()) print_rows(Context(1), rows_json(rows), request.output, table_of(all));
  if (people && !all.empty()) std::cout << counts_of(all) << "; every number is in " << request.out << "/CLAIM.json\n";
  std::cerr << failures_of(all);
  if (all.size() < claims.size()) std::cerr << "stopped; the same command goes on\n";
  const bool decided = std::ranges::all_of(all, [](const Outcome& outcome) { return outcome.failure.empty(); });
  return decided && all.size() == claims.size() ? kDone : kFailed;
}
}  // namespace

Command study_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("claims", request->names, "Claims or sources; without any, all");
  options.flag("--list", request->list, "The claims with their rules, without running them");
  const Option quick = options.flag("--quick", request->quick, "Small settings, minutes for all (the default)");
  options.flag("--full", request->full, "The settings of the kept results").excludes(quick);
  options.flag("--compare", request->compare, "Results of --out beside the kept ones");
  options.flag("--retell", request->retell, "Results of --out with the claims' words of today; numbers and verdicts stay");
  options.add("--seeds", request->seeds, "Runs of every trained setting [3, full 5]").value("N").from_to(1, 1000);
  options.add("--jobs", request->jobs, "Runs at a time [one a core]").value("N").from_to(1, 1024);
  options.add("--out", request->out, "Folder of the results and of finished runs [results]").value("DIR").not_empty();
  options.add("--kept", request->kept, "Results to compare with [study/results]").value("DIR");
  options.table(request->output);
  options.footer(
      "A claim holds or fails when the whole interval over seeds says so (bootstrap at 95 %, of three seeds their range); else "
      "it\n"
      "is undecided. The interval of three seeds holds the true mean about 75 times in 100, that of five about 83 times.\n"
      "Finished runs are kept: a study that was stopped goes on with the same command.\n\n"
      "Example:\n  isomer study --list\n  isomer study inline large-prompt.slope\n  isomer study --full softmax-rnn --out full");
  return [request] { return study_request(*request); };
}

}  // namespace isomer::cli
