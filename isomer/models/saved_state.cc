#include "isomer/models/saved_state.h"

#include "isomer/base/error.h"

namespace isomer {

namespace {
// Where the file says whose it is.
constexpr const char* kWeightsNote = "weights";
}  // namespace

void save_state(const std::string& path, const ModelState<float>& state, const LoadedModel& model) {
  ModelState<float> named = state;
  named.notes.insert_or_assign(kWeightsNote, model.parameters.fingerprint());
  named.save(path);
}

ModelState<float> load_state(const std::string& path, const LoadedModel& model) {
  ModelState<float> state = model.model.load_state(path);
  const std::string own = model.parameters.fingerprint(), saved = state.notes[kWeightsNote];
  if (saved != own)
    throw Error("cannot load " + path + ": expected a state of the weights " + own + ", which are the model's, got one of " +
                (saved.empty() ? "unknown weights" : saved));
  return state;
}

}  // namespace isomer
