#pragma once
// isomer bench --layers: times whole mixers, and how much of the time is neither products nor laws.
#include "cli/preset_bench.h"

namespace isomer::cli {

void bench_layers(const PresetBench& request, Context& context);

}  // namespace isomer::cli
