// isomer bench --explain and --crossover: what the planner chose beside what it could have chosen, and where linear laws become
// cheaper than softmax attention.
#include "cli/compare.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/report.h"
#include "cli/timing.h"
#include "isomer/base/error.h"

namespace isomer::cli {

namespace {
using nlohmann::ordered_json;

std::string sizes_of(const BenchCase& c) { return std::to_string(c.H) + "x" + std::to_string(c.K); }

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
}  // namespace

namespace {
struct Explained {
  BenchCase what;
  std::string chosen, best;
  double seconds, best_seconds;
  [[nodiscard]] double ratio() const { return seconds / best_seconds; }
  [[nodiscard]] double us_per_token(double s) const { return s * 1e6 / double(what.B * what.T); }
};

Explained explain_case(const Law& law, const BenchCase& what, Context& context, double seconds) {
  const Choice choice = law.choose(what);
  std::vector<Candidate> all = candidates_of(law, what, choice);
  race(all, context, seconds);
  // The chosen one was timed once more under its own name.
  for (const Candidate& c : all)
    if (c.form == choice.form && (c.chunk == choice.chunk || c.form != Form::chunk)) all[0].best = std::min(all[0].best, c.best);
  const auto best = std::min_element(all.begin(), all.end(), [](auto& a, auto& b) { return a.best < b.best; });
  const std::string chosen = described(choice.form, choice.chunk);
  return {what, chosen, best == all.begin() ? chosen : described(best->form, best->chunk), all[0].best, best->best};
}

ordered_json as_json(const Explained& e, int threads) {
  return {{"subject", e.what.subject},
          {"variant", e.what.variant},
          {"direction", e.what.direction},
          {"B", e.what.B},
          {"T", e.what.T},
          {"H", e.what.H},
          {"K", e.what.K},
          {"V", e.what.V},
          {"threads", threads},
          {"chosen", e.chosen},
          {"us_per_token", e.us_per_token(e.seconds)},
          {"best", e.best},
          {"best_us_per_token", e.us_per_token(e.best_seconds)},
          {"ratio", e.ratio()}};
}
}  // namespace

void explain(const std::vector<const Law*>& laws, Context& context, bool quick, bool json) {
  constexpr double kLimit = 1.1;
  Table table({"law", "variant", "direction", "T", "heads", "chosen", "µs/token", "best", "µs/token", "chosen/best"});
  auto rows = ordered_json::array();
  const Progress progress;
  int within = 0;
  for (const Law* law : laws)
    for (BenchCase what : kinds_of(*law, quick))
      for (Index T : quick ? std::vector<Index>{1, 16, 512} : std::vector<Index>{1, 4, 16, 64, 512, 2048, 8192}) {
        what.T = T;
        progress.show(what.subject + " " + what.variant + " " + what.direction + " T=" + std::to_string(T));
        const Explained e = explain_case(*law, what, context, quick ? 0.05 : 0.5);
        within += e.ratio() <= kLimit ? 1 : 0;
        table.add({what.subject, what.variant, what.direction, std::to_string(T), sizes_of(what), e.chosen,
                   formatted("%.3f", e.us_per_token(e.seconds)), e.best, formatted("%.3f", e.us_per_token(e.best_seconds)),
                   formatted("%.2f", e.ratio())});
        rows.push_back(as_json(e, context.threads()));
      }
  if (json) return print_json(context, rows);
  table.print();
  std::cout << within << " of " << rows.size() << " choices are within 10 % of the best measured one\n";
}

namespace {
/// The length at which `linear` becomes cheaper than `softmax`, between the grid's points as straight lines in the logarithms.
/// 0: from the first on; infinite: not up to the last.
double crossing(const std::vector<Index>& lengths, const std::vector<double>& linear, const std::vector<double>& softmax) {
  double before = 0;
  for (std::size_t i = lengths.size(); i-- > 0;) {
    const double gap = std::log(linear[i] / softmax[i]);
    if (gap > 0) {
      if (i + 1 == lengths.size()) return std::numeric_limits<double>::infinity();
      const double at = gap / (gap - before), step = std::log(double(lengths[i + 1]) / double(lengths[i]));
      return double(lengths[i]) * std::exp(at * step);
    }
    before = gap;
  }
  return 0;
}
}  // namespace

void crossover(const std::vector<const Law*>& laws, Context& context, Index size, bool quick, bool json) {
  const std::vector<Index> lengths =
      quick ? std::vector<Index>{64, 256, 1024} : std::vector<Index>{32, 64, 128, 256, 512, 1024, 2048, 4096};
  const char* directions[] = {"forward", "forward+backward"};
  const Index heads = std::max<Index>(1, 512 / size);
  const Progress progress;
  const auto time = [&](const Law& law, BenchCase what, const char* direction) {
    std::vector<double> seconds;
    what.direction = direction;
    what.form = Form::automatic;
    for (Index T : lengths) {
      what.T = T;
      progress.show(what.subject + " " + what.variant + " " + direction + " T=" + std::to_string(T));
      std::vector<Candidate> one;
      one.push_back({Form::automatic, 0, law.prepare(what)});
      race(one, context, quick ? 0.02 : 0.1);
      seconds.push_back(one[0].best);
    }
    return seconds;
  };
  std::map<std::string, std::vector<double>> softmax;
  for (const char* direction : directions)
    softmax[direction] =
        time(find_law("attention"), {.subject = "attention", .variant = "causal", .H = heads, .K = size, .V = size}, direction);
  Table table({"law", "variant", "heads", "threads", "forward: cheaper from T =", "forward + backward: from T ="});
  auto rows = ordered_json::array();
  for (const Law* law : laws) {
    if (law->name() == "attention") continue;
    for (BenchCase what : kinds_of(*law, true)) {
      if (what.direction != "forward") continue;
      if (what.V == what.K) what.V = size;
      what.K = size, what.H = heads;
      std::vector<std::string> cells{what.subject, what.variant, sizes_of(what), std::to_string(context.threads())};
      for (const char* direction : directions) {
        const double at = crossing(lengths, time(*law, what, direction), softmax[direction]);
        const bool never = std::isinf(at);
        cells.push_back(at == 0 ? "< " + std::to_string(lengths.front())
                        : never ? "> " + std::to_string(lengths.back())
                                : formatted("%.0f", at));
        ordered_json row{{"subject", what.subject},
                         {"variant", what.variant},
                         {"direction", direction},
                         {"H", what.H},
                         {"K", what.K},
                         {"V", what.V},
                         {"threads", context.threads()}};
        row["crossover"] = never ? ordered_json(nullptr) : ordered_json(at);
        row["shortest"] = lengths.front(), row["longest"] = lengths.back();
        rows.push_back(row);
      }
      table.add(cells);
    }
  }
  if (json)
    print_json(context, rows);
  else
    table.print();
}

}  // namespace isomer::cli
