#pragma once
// Begins a training with the weights of another model: those of the same name and shape are taken, the others start as the recipe
// says. The mixers need not be the same.
//
//   const StartReport report = start_from(session.parameters(), "runs/text");       // a run or a model's folder
//   write_text(folder.start_path(), to_json(report));
#include <string>
#include <string_view>
#include <vector>

#include "isomer/nn/parameters.h"

namespace isomer {

/// What became of one weight.
struct StartedWeight {
  enum class Fate : std::uint8_t {
    taken,
    misshapen,  // there is one of the name, of another shape
    missing,    // there is none of the name
    unknown,    // there, and the model has none of the name
  };
  std::string name;
  Fate fate = Fate::taken;
  std::vector<Index> shape, there;  // of the model, of the other one; empty if it has none
};
[[nodiscard]] std::string_view name_of(StartedWeight::Fate fate);

struct StartReport {
  std::string from;  // the folder of the weights
  std::vector<StartedWeight> weights;

  [[nodiscard]] Index count(StartedWeight::Fate fate) const;
};

/// Throws Error when there is no model at the path or none of its weights fit, and NotFinite for weights that are not finite;
/// then nothing has changed.
StartReport start_from(Parameters<float>& parameters, const std::string& path);

/// {"from": …, "taken": [names], "misshapen": [{"name": …, "shape": …, "there": …}], "missing": [names], "unknown": [names]}
[[nodiscard]] std::string to_json(const StartReport& report);

}  // namespace isomer
