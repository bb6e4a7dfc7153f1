#pragma once
// isomer bench --layers: times whole mixers, and how much of the time is neither products nor laws.
#include <string>
#include <vector>

#include "isomer/base/context.h"

namespace isomer::cli {

struct LayersRequest {
  std::vector<std::string> presets;  // all if empty
  bool quick = false, json = false;
};

void bench_layers(const LayersRequest& request, Context& context);

}  // namespace isomer::cli
