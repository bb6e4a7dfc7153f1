#include "isomer/study/trained.h"

#include <algorithm>
#include <cmath>

#include "isomer/base/format.h"

namespace isomer::study {

namespace {
bool takes_part(const Contender& model, const Budget& budget) { return budget.mode == Mode::full || !model.full_only; }

std::vector<double> rates_of(const Contender& model, const Budget& budget) {
  return budget.mode == Mode::quick || model.rates.empty() ? std::vector{model.rate} : model.rates;
}

Cell cell_of(const Comparison& of, const Contender& model, double rate, const Budget& budget, Index seed = 1) {
  Cell cell{.recipe = of.recipe, .overrides = budget.pick(of.quick, of.full), .seed = std::uint64_t(seed), .probe = of.probe};
  cell.overrides.insert(cell.overrides.end(), model.set.begin(), model.set.end());
  cell.overrides.push_back("train.lr=" + text_of(rate));
  return cell;
}

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

std::vector<Cell> Comparison::cells(const Budget& budget) const {
  std::vector<Cell> all;
  for (const Contender& model : models)
    if (takes_part(model, budget))
      for (const double rate : rates_of(model, budget))
        for (Index seed = 1; seed <= budget.seeds; ++seed) all.push_back(cell_of(*this, model, rate, budget, seed));
  return all;
}

std::vector<Comparison::Chosen> Comparison::chosen(const Budget& budget, const Cells& cells) const {
  std::vector<Chosen> all;
  for (const Contender& model : models) {
    if (!takes_part(model, budget)) continue;
    const std::vector<double> rates = rates_of(model, budget);
    std::vector<Cell> candidates;
    for (const double rate : rates) candidates.push_back(cell_of(*this, model, rate, budget));
    const std::size_t best = cells.best(candidates, budget.seeds);
    Chosen& one = all.emplace_back(Chosen{.model = &model, .rate = rates[best]});
    for (Index seed = 1; seed <= budget.seeds; ++seed)
      one.runs.push_back(&cells(cell_of(*this, model, rates[best], budget, seed)));
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
  for (const Chosen& one : chosen(budget, cells)) found.put("learning rate of " + full_name(*one.model), one.rate);
  if (!learning.empty()) found.note("still improving when the steps ended: " + listed(learning));
  if (!diverged.empty()) found.note("diverged in some run: " + listed(diverged));
}

Claim trained(Claim claim, Comparison comparison, More more) {
  claim.cells = [comparison](const Budget& budget) { return comparison.cells(budget); };
  claim.read = [comparison = std::move(comparison), more = std::move(more)](const Budget& budget, const Cells& cells,
                                                                            Evidence& found) {
    comparison.read(budget, cells, found);
    if (more) more(comparison.chosen(budget, cells), found);
  };
  return claim;
}

}  // namespace isomer::study
