#pragma once
// isomer bench --train: times steps of training whole models.
#include "cli/preset_bench.h"

namespace isomer::cli {

void bench_training(const PresetBench& request, Context& context);

}  // namespace isomer::cli
