#pragma once
// Times steps of training whole models of random weights and tokens.
#include "isomer/bench/model.h"
#include "isomer/bench/presets.h"
#include "isomer/bench/timing.h"
#include "isomer/io/table.h"

namespace isomer {

struct TrainingCase {
  std::string preset;
  Index B = 2, T = 512;
  BenchModelSizes sizes = {};
};

struct TrainingRow {
  TrainingCase what;
  Timing timing;
  int threads = 1;
  Index parameters = 0;
  double flops_per_token = 0;
  double peak = 0;  // GFLOP/s of sgemm, the best of the whole run

  [[nodiscard]] double us_per_token() const { return timing.median * 1e6 / double(what.B * what.T); }
  [[nodiscard]] double gflops() const { return flops_per_token / us_per_token() / 1e3; }
};
[[nodiscard]] Json to_json(const TrainingRow& row);
[[nodiscard]] Cells cells_of(const TrainingRow& row);

/// A preset whose check fails is refused. Stops after a case.
[[nodiscard]] BenchRows<TrainingRow> bench_training(const PresetBench& plan, Context& context, const Monitor& monitor);

}  // namespace isomer
