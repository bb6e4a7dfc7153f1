#include "isomer/bench/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "isomer/base/error.h"
#include "isomer/base/format.h"
#include "isomer/bench/timing.h"
#include "isomer/laws/bound_law.h"

namespace isomer {

namespace {
std::string sizes_of(const BenchCase& c) { return std::to_string(c.H) + "x" + std::to_string(c.K); }

std::string title(const BenchCase& c) { return c.subject + " " + c.variant + " " + c.direction + " T=" + std::to_string(c.T); }

std::string described(Form form, Index chunk) {
  const std::string name(name_of(form));
  return form == Form::chunk && chunk > 0 ? name + " " + std::to_string(chunk) : name;
}

struct Candidate {
  Form form;
  Index chunk;
  BenchWork work;
  double best = std::numeric_limits<double>::infinity();
};

/// Every way to run the case that the planner has to choose from, the chosen one first.
std::vector<Candidate> candidates_of(const Law& law, BenchCase what, const Choice& choice) {
  constexpr Index kChunks[] = {24, 36, 48, 64, 96};
  // Beyond these lengths a form is out of the question, and slow to time.
  constexpr Index kSteps = 32, kParallel = 128;
  const std::span<const Form> forms = law.forms();
  const auto has = [&](Form form) { return std::find(forms.begin(), forms.end(), form) != forms.end(); };
  std::vector<Candidate> all;
  const auto add = [&](Form form, Index chunk) {
    what.form = form, what.chunk = chunk;
    all.push_back({form, chunk, law.prepare(what)});
  };
  add(Form::automatic, 0);
  if (what.direction == "forward" && what.T <= kSteps && has(Form::step)) add(Form::step, 0);
  if (what.T <= kParallel && has(Form::parallel)) add(Form::parallel, 0);
  for (Index chunk : kChunks)
    if (choice.chunk > 0 && chunk < what.T) add(Form::chunk, chunk);
  if (all.size() == 1) add(Form::chunk, 0);
  return all;
}

/// Turn by turn, so that a slow spell of the machine hits all alike; the best of each counts.
void race(std::vector<Candidate>& all, Context& context, double seconds) {
  // A form that the case does not have says so at its first call.
  std::erase_if(all, [&](const Candidate& c) {
    try {
      c.work.run(context);
      return false;
    } catch (const Error&) {
      return c.form != Form::automatic;
    }
  });
  int rounds = 0;
  for (double spent = 0; rounds < 5 || spent < seconds; ++rounds)
    for (Candidate& c : all) {
      const double once = seconds_of(c.work, context);
      c.best = std::min(c.best, once);
      spent += once;
    }
}

/// One case for each variant, direction and head size of the law's own cases.
std::vector<BenchCase> kinds_of(const Law& law, bool quick) {
  std::vector<BenchCase> kinds;
  std::set<std::string> seen;
  for (BenchCase c : law.bench_cases(quick)) {
    if (c.direction == "step" || c.H == 1) continue;
    if (c.direction == "backward") c.direction = "forward+backward";
    if (seen.insert(c.variant + c.direction + sizes_of(c)).second) kinds.push_back(c);
  }
  return kinds;
}
ChoiceRow explain_case(const Law& law, const BenchCase& what, Context& context, double seconds) {
  const Choice choice = BoundCase(law, what).plan(what);
  std::vector<Candidate> all = candidates_of(law, what, choice);
  race(all, context, seconds);
  // The chosen one was timed once more under its own name.
  for (const Candidate& c : all)
    if (c.form == choice.form && (c.chunk == choice.chunk || c.form != Form::chunk)) all[0].best = std::min(all[0].best, c.best);
  const auto best = std::min_element(all.begin(), all.end(), [](auto& a, auto& b) { return a.best < b.best; });
  const std::string chosen = described(choice.form, choice.chunk);
  return {.what = what,
          .threads = context.threads(),
          .chosen = chosen,
          .best = best == all.begin() ? chosen : described(best->form, best->chunk),
          .seconds = all[0].best,
          .best_seconds = best->best};
}

/// The length at which `linear` becomes cheaper than `softmax`, between the grid's points as straight lines in the logarithms.
/// 0: from the first on; nothing: not up to the last.
std::optional<double> crossing(const std::vector<Index>& lengths, const std::vector<double>& linear,
                               const std::vector<double>& softmax) {
  double before = 0;
  for (std::size_t i = lengths.size(); i-- > 0;) {
    const double gap = std::log(linear[i] / softmax[i]);
    if (gap > 0) {
      if (i + 1 == lengths.size()) return {};
      const double at = gap / (gap - before), step = std::log(double(lengths[i + 1]) / double(lengths[i]));
      return double(lengths[i]) * std::exp(at * step);
    }
    before = gap;
  }
  return 0;
}

/// Of softmax attention and of other laws, along the same lengths.
struct Lengths {
  std::vector<Index> T;
  double budget;  // seconds for each

  [[nodiscard]] std::vector<double> time(const Law& law, BenchCase what, Context& context, const Monitor& monitor) const {
    std::vector<double> seconds;
    what.form = Form::automatic;
    for (const Index length : T) {
      what.T = length;
      monitor.show(title(what));
      std::vector<Candidate> one;
      one.push_back({Form::automatic, 0, law.prepare(what)});
      race(one, context, budget);
      seconds.push_back(one[0].best);
    }
    return seconds;
  }
};

/// The length as a reader sees it.
std::string crossover_cell(const CrossoverRow& row) {
  if (!row.at) return "> " + std::to_string(row.longest);
  return *row.at == 0 ? "< " + std::to_string(row.shortest) : formatted("%.0f", *row.at);
}
}  // namespace

Json to_json(const ChoiceRow& row) {
  return Json::object({{"subject", row.what.subject},
                       {"variant", row.what.variant},
                       {"direction", row.what.direction},
                       {"B", row.what.B},
                       {"T", row.what.T},
                       {"H", row.what.H},
                       {"K", row.what.K},
                       {"V", row.what.V},
                       {"threads", row.threads},
                       {"chosen", row.chosen},
                       {"us_per_token", row.us_per_token(row.seconds)},
                       {"best", row.best},
                       {"best_us_per_token", row.us_per_token(row.best_seconds)},
                       {"ratio", row.ratio()}});
}

Cells cells_of(const ChoiceRow& row) {
  return {{"law", row.what.subject},
          {"variant", row.what.variant},
          {"direction", row.what.direction},
          {"T", std::to_string(row.what.T)},
          {"heads", sizes_of(row.what)},
          {"chosen", row.chosen},
          {"µs/token", formatted("%.3f", row.us_per_token(row.seconds))},
          {"best", row.best},
          {"µs/token", formatted("%.3f", row.us_per_token(row.best_seconds))},
          {"chosen/best", formatted("%.2f", row.ratio())}};
}

std::vector<ChoiceRow> explain(const std::vector<const Law*>& laws, Context& context, bool quick, const Monitor& monitor) {
  const std::vector<Index> lengths = quick ? std::vector<Index>{1, 16, 512} : std::vector<Index>{1, 4, 16, 64, 512, 2048, 8192};
  std::vector<ChoiceRow> rows;
  for (const Law* law : laws)
    for (BenchCase what : kinds_of(*law, quick))
      for (const Index T : lengths) {
        if (monitor.stopped()) return rows;
        what.T = T;
        monitor.show(title(what));
        rows.push_back(explain_case(*law, what, context, quick ? 0.05 : 0.5));
      }
  return rows;
}

Json to_json(const CrossoverRow& row) {
  return Json::object({{"subject", row.what.subject},
                       {"variant", row.what.variant},
                       {"direction", row.what.direction},
                       {"H", row.what.H},
                       {"K", row.what.K},
                       {"V", row.what.V},
                       {"threads", row.threads},
                       {"crossover", row.at},
                       {"shortest", row.shortest},
                       {"longest", row.longest}});
}

std::string crossover_text(const std::vector<CrossoverRow>& rows) {
  std::vector<std::vector<std::string>> lines{
      {"law", "variant", "heads", "threads", "forward: cheaper from T =", "forward + backward: from T ="}};
  for (const CrossoverRow& row : rows) {
    if (row.what.direction == "forward")
      lines.push_back({row.what.subject, row.what.variant, sizes_of(row.what), std::to_string(row.threads)});
    lines.back().push_back(crossover_cell(row));
  }
  return aligned(lines);
}

std::vector<CrossoverRow> crossover(const std::vector<const Law*>& laws, Context& context, Index size, bool quick,
                                    const Monitor& monitor) {
  const Lengths lengths{quick ? std::vector<Index>{64, 256, 1024} : std::vector<Index>{32, 64, 128, 256, 512, 1024, 2048, 4096},
                        quick ? 0.02 : 0.1};
  const std::array<std::string, 2> directions{"forward", "forward+backward"};
  const Index heads = std::max<Index>(1, 512 / size);
  std::array<std::vector<double>, 2> softmax;
  for (std::size_t i = 0; i < 2; ++i)
    softmax[i] =
        lengths.time(find_law("attention"),
                     {.subject = "attention", .variant = "causal", .direction = directions[i], .H = heads, .K = size, .V = size},
                     context, monitor);
  std::vector<CrossoverRow> rows;
  for (const Law* law : laws) {
    if (law->name() == "attention") continue;
    for (BenchCase what : kinds_of(*law, true)) {
      if (monitor.stopped()) return rows;
      if (what.direction != "forward") continue;
      if (what.V == what.K) what.V = size;
      what.K = size, what.H = heads;
      for (std::size_t i = 0; i < 2; ++i) {
        what.direction = directions[i];
        const std::vector<double> seconds = lengths.time(*law, what, context, monitor);
        rows.push_back({.what = what,
                        .threads = context.threads(),
                        .at = crossing(lengths.T, seconds, softmax[i]),
                        .shortest = lengths.T.front(),
                        .longest = lengths.T.back(),
                        .lengths = lengths.T,
                        .seconds = seconds,
                        .softmax_seconds = softmax[i]});
      }
    }
  }
  return rows;
}

}  // namespace isomer
