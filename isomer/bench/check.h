#pragma once
// The rows of `isomer check`: laws against their references, presets as layers.
//
//   for (const CheckRow& row : check_named({"delta", "gla"}, context, monitor)) std::cout << to_json(row).dump() << '\n';
#include "isomer/base/monitor.h"
#include "isomer/io/table.h"
#include "isomer/laws/check.h"

namespace isomer {

[[nodiscard]] Json to_json(const CheckRow& row);
[[nodiscard]] Cells cells_of(const CheckRow& row);

/// Of laws and presets by name; of all if none is named. Stops after one of them. Throws Error for an unknown name, with the
/// nearest.
[[nodiscard]] std::vector<CheckRow> check_named(const std::vector<std::string>& names, Context& context, const Monitor& monitor);

}  // namespace isomer
