#pragma once
// The state of a stream in a file, for the weights that it was made with and no others.
//
//   save_state("state.safetensors", state, *loaded);
//   ModelState<float> later = load_state("state.safetensors", *loaded);       // in another process, on another machine
#include <string>

#include "isomer/models/model_folder.h"

namespace isomer {

/// Throws Error "cannot write PATH: …"; the file is there whole or not at all.
void save_state(const std::string& path, const ModelState<float>& state, const LoadedModel& model);
/// Throws Error "cannot load PATH: …" when it is damaged, or of other layers or weights.
[[nodiscard]] ModelState<float> load_state(const std::string& path, const LoadedModel& model);

}  // namespace isomer
