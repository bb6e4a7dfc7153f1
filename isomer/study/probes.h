#pragma once
// What claims look at in a trained model beside its metric: the same weights on other examples, with other options, without a
// kind of layer, and how the gradient is divided between kinds of layers.
//
//   const double longer = value_with(session, {"task.test_length=256"}, {}, context);
//   const double without = value_with(session, {}, {.examples = 256, .silenced = "mlstm"}, context);  // layers that add nothing
#include <string>

#include "isomer/study/cell.h"

namespace isomer::study {

struct ProbeOptions {
  Index examples = 512;       // of the test, behind those of validation
  std::string silenced = {};  // a preset: what its layers compute is left out
};

/// The metric of the session's weights with some keys of its recipe changed, which may be any that leave the weights as they are.
[[nodiscard]] double value_with(Session& session, const Overrides& overrides, const ProbeOptions& options, Context& context);

/// The part of the squared gradient, of all mixers, that the layers of a preset get; a mean over batches of training that have
/// not been seen, with the windows of training.
[[nodiscard]] double gradient_share(Session& session, const std::string& preset, Context& context);

}  // namespace isomer::study
