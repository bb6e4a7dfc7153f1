#pragma once
// Times whole mixers, and how much of the time is neither products nor laws.
//
//   const BenchRows<LayerRow> result = bench_layers({.presets = {"gla"}, .quick = true}, context, monitor);
#include "isomer/bench/presets.h"
#include "isomer/bench/timing.h"
#include "isomer/io/table.h"
#include "isomer/mixers/cost.h"

namespace isomer {

struct LayerCase {
  std::string preset;
  Index width = 256, T = 1024;
  bool backward = false;

  [[nodiscard]] const char* direction() const { return backward ? "forward+backward" : "forward"; }
};

struct LayerRow {
  LayerCase what;
  BenchCase law;  // the main one
  Cost cost;
  Timing timing;
  int threads = 1;
  double peak = 0;  // GFLOP/s of sgemm, the best of the whole run
  double product_share = 0, law_share = 0;

  [[nodiscard]] double us_per_token() const { return timing.median * 1e6 / double(what.T); }
  /// Backward counts twice.
  [[nodiscard]] double gflops() const { return cost.flops_per_token * (what.backward ? 3 : 1) / us_per_token() / 1e3; }
  [[nodiscard]] double outside_share() const { return 1 - product_share - law_share; }
  [[nodiscard]] Index state_bytes() const { return Index(sizeof(float)) * (cost.state_floats + cost.state_per_token * what.T); }
};
[[nodiscard]] Json to_json(const LayerRow& row);
[[nodiscard]] Cells cells_of(const LayerRow& row);

/// A preset whose check fails is refused. Stops after a case.
[[nodiscard]] BenchRows<LayerRow> bench_layers(const PresetBench& plan, Context& context, const Monitor& monitor);

}  // namespace isomer
