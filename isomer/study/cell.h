#pragma once
// A cell: one small run of a trained claim, through the ordinary trainer, and what is kept of it.
//
//   const Cell cell{.recipe = kRecall, .overrides = {"model.layers=gla*2", "train.lr=3e-3"}, .seed = 2};
//   const CellResult result = run_cell(cell, context);
//   const double value = result.value;                     // the task's metric on test examples that chose nothing
//
// A result depends on (resolved recipe, seed, probe, instruction set, version) alone: that is its key, under which it is kept
// (kept.h) and never run again. A run that diverges is a result, too.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "isomer/base/context.h"
#include "isomer/train/recipe.h"
#include "isomer/train/session.h"

namespace isomer::study {

/// Raised when the engine learns differently than before, so that older cells are run again.
inline constexpr int kCellVersion = 1;

/// What a claim measures on a trained model beside the metric, as numbers by name.
using Numbers = std::map<std::string, double>;
struct Probe {
  std::string name;  // part of the key
  std::function<Numbers(Session&, Context&)> measure;
};

struct CellResult;
/// Called now and then; false: stop, by an Error "stopped".
using CellProgress = std::function<bool(double share)>;

/// What is done with a recipe where it is not to train its model: all that is measured, but for key and seconds.
struct Procedure {
  std::string name;  // part of the key
  std::function<CellResult(const Recipe&, Context&, const CellProgress&)> run;
};

struct Cell {
  std::string recipe;        // TOML
  Overrides overrides = {};  // "train.lr=1e-3"; of a key that stands twice, the last
  std::uint64_t seed = 1;    // of parameters and data
  const Probe* probe = nullptr;
  const Procedure* procedure = nullptr;  // in place of training
};

/// One evaluation on the way.
struct CellPoint {
  Index step = 0;
  double loss = 0, value = 0;  // training loss; metric on validation examples
};

struct CellResult {
  std::string key = {};
  double value = 0;       // of the metric, on test examples
  double validation = 0;  // on others, by which learning rates are chosen
  double loss = 0;        // on the test examples
  bool lower_is_better = false;
  bool diverged = false;   // value and validation are then the worst there is: 0, or infinity where lower is better
  bool improving = false;  // the last evaluations were still better than those before: more steps would help
  Index steps = 0, parameters = 0;
  double seconds = 0;       // of processor time, so that it means the same on a busy machine
  double tokens_per_s = 0;  // by the clock
  std::vector<CellPoint> curve = {};
  Numbers numbers = {};  // of the probe

  /// The validation's value, so that more is better.
  [[nodiscard]] double score() const { return lower_is_better ? -validation : validation; }
};

/// The recipe with overrides and seed. Throws Error for one that cannot be read.
[[nodiscard]] Recipe recipe_of(const Cell& cell);
[[nodiscard]] std::string key_of(const Cell& cell, Isa isa);
/// A hash of settings as text, of the instruction set and of the version.
[[nodiscard]] std::string key_of(const std::string& settings, Isa isa);

/// Is the mean of the last quarter of a curve better than that of the quarter before, by more than 1 % of it, or by a point of an
/// accuracy?
[[nodiscard]] bool still_improving(const std::vector<CellPoint>& curve, bool lower_is_better);

/// Trains and measures, or runs the procedure.
[[nodiscard]] CellResult run_cell(const Cell& cell, Context& context, const CellProgress& progress = {});

/// Results of finished cells.
class Cells {
 public:
  explicit Cells(Isa isa) : isa_(isa) {}
  void add(CellResult result) { results_.insert_or_assign(result.key, std::move(result)); }
  [[nodiscard]] bool has(const Cell& cell) const { return results_.contains(key_of(cell, isa_)); }
  /// Throws Error when the cell was not run.
  [[nodiscard]] const CellResult& operator()(const Cell& cell) const;

 private:
  Isa isa_;
  std::map<std::string, CellResult> results_;
};

}  // namespace isomer::study
