#include "isomer/study/cell.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "isomer/base/error.h"
#include "isomer/base/hash.h"
#include "isomer/study/lab.h"
#include "isomer/train/stopping.h"

namespace isomer::study {

namespace {
// Looks of a run at its validation examples, unless the recipe says how often.
constexpr Index kLooks = 20;
// Test examples follow those of validation.
constexpr Index kTestFactor = 2;

double worst(bool lower_is_better) { return lower_is_better ? std::numeric_limits<double>::infinity() : 0; }

/// 128 bits: two hashes of different starts.
std::string digits_of(const std::string& text) { return hex_of(hash_of(text)) + hex_of(hash_of(text, 0x84222325cbf29ce4)); }
}  // namespace

bool still_improving(const std::vector<CellPoint>& curve, bool lower_is_better) {
  const std::size_t quarter = curve.size() / 4;
  if (quarter == 0) return true;
  double last = 0, before = 0;
  for (std::size_t i = 0; i < quarter; ++i) {
    last += curve[curve.size() - 1 - i].value;
    before += curve[curve.size() - 1 - quarter - i].value;
  }
  return lower_is_better ? last < 0.99 * before : last > before + 0.01 * double(quarter);
}

Recipe recipe_of(const Cell& cell) {
  Overrides all = cell.overrides;
  for (const char* key : {"train.seed=", "task.seed="}) all.push_back(key + std::to_string(cell.seed));
  return parse_recipe(parse_toml(cell.recipe, "the claim's recipe"), all);
}

std::string key_of(const Cell& cell, Isa isa) {
  return key_of(to_toml(resolved(recipe_of(cell))) + "\nprobe " + (cell.probe == nullptr ? "" : cell.probe->name) +
                    (cell.procedure == nullptr ? "" : "\nprocedure " + cell.procedure->name),
                isa);
}

std::string key_of(const std::string& settings, Isa isa) {
  return digits_of(settings + "\nisa " + std::string(name_of(isa)) + "\nversion " + std::to_string(kCellVersion));
}

CellResult run_cell(const Cell& cell, Context& context, const CellProgress& progress) {
  const Recipe recipe = recipe_of(cell);
  const TrainRecipe& train = recipe.train;
  const ProcessorTime watch;
  if (cell.procedure != nullptr) {
    CellResult result = cell.procedure->run(recipe, context, progress);
    result.key = key_of(cell, context.isa());
    result.seconds = watch.seconds();
    return result;
  }
  Session session(recipe, context);
  const Index examples = train.eval_examples,
              every = train.eval_every > 0 ? train.eval_every : std::max<Index>(1, train.steps / kLooks);
  CellResult result{.key = key_of(cell, context.isa()), .parameters = session.parameters().trained_size()};
  result.lower_is_better = lower_is_better(session.task().shape().metric);
  Stopping stopping(train, result.lower_is_better);
  double tokens = 0, seconds = 0;
  try {
    for (bool done = false; !done;) {
      const StepReport step = session.step();
      tokens += double(step.tokens), seconds += step.seconds;
      done = step.step == train.steps;
      if (progress && !progress(double(step.step) / double(train.steps))) throw Error("stopped");
      if (step.step % every != 0 && !done) continue;
      const EvalReport look = session.evaluate({.examples = examples});
      result.curve.push_back({step.step, step.loss, look.value});
      done = stopping.enough(look.value) || done;
    }
    const EvalReport test = session.evaluate({.examples = kTestFactor * examples, .first = examples});
    result.value = test.value, result.loss = test.loss, result.validation = result.curve.back().value;
    if (cell.probe != nullptr) result.numbers = cell.probe->measure(session, context);
  } catch (const NotFinite&) {
    result.diverged = true;
    result.value = result.validation = worst(result.lower_is_better);
    result.loss = std::numeric_limits<double>::infinity();
  }
  result.improving = !result.diverged && !stopping.reached_goal() && !stopping.out_of_patience() &&
                     still_improving(result.curve, result.lower_is_better);
  result.steps = session.steps_done();
  result.seconds = watch.seconds();
  result.tokens_per_s = seconds > 0 ? tokens / seconds : 0;
  return result;
}

const CellResult& Cells::operator()(const Cell& cell) const {
  const auto found = results_.find(key_of(cell, isa_));
  require(found != results_.end(), "study", "expected the cell to have been run");
  return found->second;
}

}  // namespace isomer::study
