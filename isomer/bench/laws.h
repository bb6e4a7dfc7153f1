#pragma once
// Times laws on their own cases, beside the machine's sgemm peak of the same minute.
//
//   const std::vector<LawRow> rows = bench_laws({.laws = {&find_law("delta")}, .quick = true}, context, monitor).rows;
#include <optional>

#include "isomer/base/monitor.h"
#include "isomer/bench/timing.h"
#include "isomer/io/table.h"

namespace isomer {

struct LawBench {
  std::vector<const Law*> laws = {};  // all if empty
  std::optional<Form> form = {};      // only this one
  bool quick = false;                 // fewer cases and samples
};

struct LawRow {
  BenchCase what;
  int threads = 1;
  Timing timing;
  double us_per_token = 0, gflops = 0, peak_share = 0, state_bytes = 0;
};
[[nodiscard]] Json to_json(const LawRow& row);
[[nodiscard]] Cells cells_of(const LawRow& row);

/// A law whose check fails is refused. Stops after a case.
[[nodiscard]] BenchRows<LawRow> bench_laws(const LawBench& plan, Context& context, const Monitor& monitor);

}  // namespace isomer
