#pragma once
// Every law of a trained model, on the tokens it is given, as a dynamical system (nn/mixer_dsf.h): effective attention matrices,
// eigenvalues, memory horizons. In double, whatever the model computes in. For short sequences.
//
//   for (const ModelLaw& law : laws_of(*loaded, input, context)) print(law.layer, dsf_views(law.call));
#include <vector>

#include "isomer/models/model_folder.h"
#include "isomer/nn/mixer_dsf.h"

namespace isomer {

/// A call of a law in a layer.
struct ModelLaw {
  Index layer = 0;
  LawCall call;
};

/// In the order of the layers. Throws Error for a model whose layers see whole sequences, which are no systems, and for inputs of
/// another size than expected.
[[nodiscard]] std::vector<ModelLaw> laws_of(const LoadedModel& loaded, const ModelInput& in, Context& context);
/// Of any layers.
[[nodiscard]] std::vector<ModelLaw> laws_of(const Model<double>& model, const ModelInput& in, Context& context);

/// Matrices beyond are for no eye, and systems take T squared numbers, some of them more.
inline constexpr Index kLongestSystem = 256;

}  // namespace isomer
