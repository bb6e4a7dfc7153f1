#include "isomer/study/trained.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "isomer/base/error.h"
#include "isomer/base/format.h"
#include "isomer/train/stopping.h"

namespace isomer::study {

namespace {
bool takes_part(const Contender& model, const Budget& budget) { return budget.mode == Mode::full || !model.full_only; }

Cell cell_of(const Comparison& of, const Contender& model, double rate, const Budget& budget, Index seed = 1) {
  Cell cell{.recipe = of.recipe,
            .overrides = budget.pick(of.quick, of.full),
            .seed = std::uint64_t(seed),
            .probe = of.probe,
            .procedure = of.procedure};
  cell.overrides.insert(cell.overrides.end(), model.set.begin(), model.set.end());
  cell.overrides.push_back("train.lr=" + text_of(rate));
  return cell;
}

/// The cells of a model's search that are known to be needed, and the learning rate that it ends with.
class Search {
 public:
  Search(const Comparison& of, const Contender& model, const Budget& budget, const Cells& done)
      : of_(of), model_(model), budget_(budget), done_(done) {
    if (budget.mode == Mode::full && of.search)
      chosen_ = search();
    else
      chosen_ = model.rate;
    if (chosen_)
      for (Index seed = 1; seed <= budget.seeds; ++seed) take(*chosen_, seed);
  }
  [[nodiscard]] const std::vector<Cell>& cells() const { return cells_; }
  /// None before the search is over.
  [[nodiscard]] std::optional<double> chosen() const { return chosen_; }

 private:
  /// Is the run done? It is needed.
  bool take(double rate, Index seed) {
    const Cell cell = cell_of(of_, model_, rate, budget_, seed);
    const auto known = std::ranges::find_if(
        cells_, [&](const Cell& other) { return other.seed == cell.seed && other.overrides.back() == cell.overrides.back(); });
    if (known == cells_.end()) cells_.push_back(cell);
    return done_.has(cell);
  }
  /// Did every seed's run reach the goal of its recipe (train.stop_at)? None before all of them are done; the first one is.
  std::optional<bool> reaches_goal(double rate) {
    const auto reached = [&](Index seed) {
      const Cell cell = cell_of(of_, model_, rate, budget_, seed);
      const CellResult& run = done_(cell);
      Stopping stopping(recipe_of(cell).train, run.lower_is_better);
      (void)stopping.enough(run.validation);
      return !run.diverged && stopping.reached_goal();
    };
    if (!reached(1)) return false;
    bool known = true;
    for (Index seed = 2; seed <= budget_.seeds; ++seed) known = take(rate, seed) && known;
    if (!known) return {};
    for (Index seed = 2; seed <= budget_.seeds; ++seed)
      if (!reached(seed)) return false;
    return true;
  }
  /// Of the first seeds, added up.
  [[nodiscard]] double score(double rate, Index seeds) const {
    double sum = 0;
    for (Index seed = 1; seed <= seeds; ++seed) sum += done_(cell_of(of_, model_, rate, budget_, seed)).score();
    return sum;
  }

  /// From the step of the ladder that is nearest to the model's own rate outwards, until the best is not at an end, or brings
  /// every seed to the goal, above which nothing counts as better.
  std::optional<double> search() {
    const auto distance = [&](double step) { return std::abs(std::log(step / model_.rate)); };
    const std::vector<double>& ladder = of_.ladder;
    const auto start = std::ranges::min_element(ladder, {}, distance);
    if (!take(*start, 1)) return {};
    std::vector<double> tried{*start};  // the best first
    auto low = start, high = start;
    const auto try_next = [&](auto step) {
      if (!take(*step, 1)) return false;
      const auto better = [&](double other) { return score(*step, 1) > score(other, 1); };
      tried.insert(std::ranges::find_if(tried, better), *step);
      return true;
    };
    while (true) {
      const std::optional<bool> goal = reaches_goal(tried.front());
      if (!goal) return {};
      if (*goal) return tried.front();
      const bool down = tried.front() == *low && low != ladder.begin(), up = tried.front() == *high && high + 1 != ladder.end();
      if (!down && !up) break;
      // Both neighbours of the first step are needed in any case.
      const bool known_below = !down || try_next(--low), known_above = !up || try_next(++high);
      if (!known_below || !known_above) return {};
    }
    if (tried.size() < 2 || budget_.seeds < 2 || !of_.second_look) return tried.front();
    const bool known_first = take(tried[0], 2), known_second = take(tried[1], 2);
    if (!known_first || !known_second) return {};
    return score(tried[1], 2) > score(tried[0], 2) ? tried[1] : tried[0];
  }

  const Comparison& of_;
  const Contender& model_;
  const Budget& budget_;
  const Cells& done_;
  std::vector<Cell> cells_;
  std::optional<double> chosen_;
};

/// "linear attention at 16"
std::string full_name(const Contender& model) { return model.name + (model.x ? " at " + text_of(*model.x) : ""); }

/// "a, b and 3 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return names.size() <= kMost ? text : text + " and " + std::to_string(names.size() - kMost) + " more";
}
}  // namespace

Reading number(std::string name, double best) {
  return {[name = std::move(name)](const CellResult& run) { return run.diverged ? std::nan("") : run.numbers.at(name); }, best};
}

std::vector<Cell> Comparison::cells(const Budget& budget, const Cells& done) const {
  std::vector<Cell> all;
  for (const Contender& model : models)
    if (takes_part(model, budget)) std::ranges::copy(Search(*this, model, budget, done).cells(), std::back_inserter(all));
  return all;
}

std::vector<Comparison::Chosen> Comparison::chosen(const Budget& budget, const Cells& cells) const {
  std::vector<Chosen> all;
  for (const Contender& model : models) {
    if (!takes_part(model, budget)) continue;
    const std::optional<double> rate = Search(*this, model, budget, cells).chosen();
    require(rate.has_value(), "study", "expected the search for the learning rate of ", full_name(model), " to be over");
    Chosen& one = all.emplace_back(Chosen{.model = &model, .rate = *rate});
    for (Index seed = 1; seed <= budget.seeds; ++seed) one.runs.push_back(&cells(cell_of(*this, model, *rate, budget, seed)));
  }
  return all;
}

void Comparison::read(const Budget& budget, const Cells& cells, Evidence& found) const {
  std::vector<std::string> learning, diverged;
  for (const Chosen& one : chosen(budget, cells)) {
    const Contender& model = *one.model;
    for (const CellResult* run : one.runs) {
      const double value = reading ? reading->value(*run) : run->value;
      model.x ? found.add(model.name, *model.x, value) : found.add(model.name, value);
    }
    if (std::ranges::any_of(one.runs, &CellResult::diverged)) diverged.push_back(full_name(model));
    if (judged == Judged::when_it_has_learned && std::ranges::any_of(one.runs, &CellResult::improving)) {
      const double best = reading ? reading->best : one.runs.front()->lower_is_better ? 0 : 1;
      model.x ? found.may_reach(model.name, *model.x, best) : found.may_reach(model.name, best);
      learning.push_back(full_name(model));
    }
  }
  for (const Chosen& one : chosen(budget, cells)) {
    const std::string name = "learning rate of " + full_name(*one.model);
    found.put(name, one.rate);
    found.set_unit(name, kLearningRate);
  }
  if (!learning.empty()) found.note("still improving when the steps ended: " + listed(learning));
  if (!diverged.empty()) found.note("diverged in some run: " + listed(diverged));
}

Claim trained(Claim claim, Comparison comparison, More more) {
  claim.cells = [comparison](const Budget& budget, const Cells& done) { return comparison.cells(budget, done); };
  claim.read = [comparison = std::move(comparison), more = std::move(more)](const Budget& budget, const Cells& cells,
                                                                            Evidence& found) {
    comparison.read(budget, cells, found);
    if (more) more(comparison.chosen(budget, cells), found);
  };
  return claim;
}

}  // namespace isomer::study
