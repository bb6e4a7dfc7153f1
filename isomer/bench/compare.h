#pragma once
// What the planner chose beside what it could have chosen, and where linear laws become cheaper than softmax attention.
#include <optional>
#include <string>
#include <vector>

#include "isomer/base/monitor.h"
#include "isomer/io/table.h"
#include "isomer/laws/law.h"

namespace isomer {

/// What Form::automatic takes for a case, and how far that is from the best measured choice.
struct ChoiceRow {
  BenchCase what;
  int threads = 1;
  std::string chosen, best;  // "chunk 64", "step"
  double seconds = 0, best_seconds = 0;

  [[nodiscard]] double ratio() const { return seconds / best_seconds; }
  [[nodiscard]] double us_per_token(double s) const { return s * 1e6 / double(what.B * what.T); }
};
[[nodiscard]] Json to_json(const ChoiceRow& row);
[[nodiscard]] Cells cells_of(const ChoiceRow& row);

/// Stops after a case.
[[nodiscard]] std::vector<ChoiceRow> explain(const std::vector<const Law*>& laws, Context& context, bool quick,
                                             const Monitor& monitor);

/// From which length on a law is cheaper than softmax attention.
struct CrossoverRow {
  BenchCase what;  // its T means nothing
  int threads = 1;
  std::optional<double> at;         // 0: from the shortest on; nothing: not up to the longest
  Index shortest = 0, longest = 0;  // that were measured
  std::vector<Index> lengths = {};  // all of them, with the seconds of this law and of softmax attention
  std::vector<double> seconds = {}, softmax_seconds = {};
};
[[nodiscard]] Json to_json(const CrossoverRow& row);
/// A line for each law and variant, with both directions.
[[nodiscard]] std::string crossover_text(const std::vector<CrossoverRow>& rows);

/// Forward, and forward with backward, of each law for a model of 512 channels in heads of `size`. Stops after a law and variant.
[[nodiscard]] std::vector<CrossoverRow> crossover(const std::vector<const Law*>& laws, Context& context, Index size, bool quick,
                                                  const Monitor& monitor);

}  // namespace isomer
