#pragma once
// Every preset with what a layer of it costs: the rows of `isomer list`.
#include <string>
#include <vector>

#include "isomer/io/table.h"
#include "isomer/mixers/cost.h"

namespace isomer {

struct PresetRow {
  std::string preset, source, summary;
  std::string law = {};      // the main one
  std::string problem = {};  // why it cannot be built at this width; then there is no law and no cost
  Cost cost = {};
};
[[nodiscard]] Json to_json(const PresetRow& row);
[[nodiscard]] Cells cells_of(const PresetRow& row);

/// Of layers of this width, in sequences of so many tokens; by law.
[[nodiscard]] std::vector<PresetRow> preset_rows(Index width, Index tokens);

}  // namespace isomer
