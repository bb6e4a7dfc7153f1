#include "isomer/report/run_data.h"

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/base/machine.h"
#include "isomer/report/schema.h"
#include "isomer/train/run_folder.h"
#include "isomer/train/run_summary.h"

namespace isomer {

namespace {
constexpr std::size_t kMost = 2000;  // points of a curve: more than a screen has

template <class Line>
Json column(const std::vector<Line>& lines, auto member) {
  Json all = Json::array();
  for (const Line& line : lines) all.push(Json(line.*member));
  return all;
}

Json train_json(const std::vector<StepLine>& lines) {
  return Json::object({{"step", column(lines, &StepLine::step)},
                       {"seconds", column(lines, &StepLine::seconds)},
                       {"loss", column(lines, &StepLine::loss)},
                       {"lr", column(lines, &StepLine::lr)},
                       {"grad_norm", column(lines, &StepLine::gradient_norm)},
                       {"tokens_per_s", column(lines, &StepLine::tokens_per_second)}});
}

Json eval_json(const std::vector<EvalLine>& lines) {
  return Json::object({{"step", column(lines, &EvalLine::step)},
                       {"seconds", column(lines, &EvalLine::seconds)},
                       {"loss", column(lines, &EvalLine::loss)},
                       {"value", column(lines, &EvalLine::value)}});
}

Json run_json(const std::string& path) {
  std::vector<StepLine> steps;
  std::vector<EvalLine> evals;
  for (const MetricsLine& line : RunFolder::open(path).metrics().read()) {
    if (const auto* step = std::get_if<StepLine>(&line)) steps.push_back(*step);
    if (const auto* eval = std::get_if<EvalLine>(&line)) evals.push_back(*eval);
  }
  Json run = to_json(summary_of(path));
  run.set("lines", steps.size());
  run.set("train", train_json(thinned(steps, kMost)));
  run.set("eval", eval_json(evals));
  return run;
}
}  // namespace

std::vector<StepLine> thinned(std::span<const StepLine> lines, std::size_t most) {
  if (lines.size() <= most) return {lines.begin(), lines.end()};
  const std::size_t parts = std::max<std::size_t>(most / 2, 1);
  std::vector<StepLine> kept;
  for (std::size_t p = 0; p < parts; ++p) {
    const auto begin = lines.begin() + std::ptrdiff_t(lines.size() * p / parts);
    const auto end = lines.begin() + std::ptrdiff_t(lines.size() * (p + 1) / parts);
    // A loss that is not a number is neither less nor more: the first of a part stays in its place.
    const auto [least, largest] = std::minmax_element(begin, end, [](const auto& a, const auto& b) { return a.loss < b.loss; });
    kept.push_back(*std::min(least, largest));
    if (least != largest) kept.push_back(*std::max(least, largest));
  }
  return kept;
}

RunData run_data(std::span<const std::string> runs) {
  RunData all;
  Json rows = Json::array();
  for (const std::string& path : runs) try {
      rows.push(run_json(path));
    } catch (const Error& problem) {
      all.problems.emplace_back(problem.what());
    }
  all.data = Json::object(
      {{"schema", kPageSchema}, {"kind", "runs"}, {"version", version()}, {"problems", all.problems}, {"runs", rows}});
  return all;
}

}  // namespace isomer
