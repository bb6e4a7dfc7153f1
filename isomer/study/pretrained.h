#pragma once
// Conversions of pre-trained models, for claims: every softmax attention gives way to the mixers that a recipe names, its
// projections stay, and the new model learns from the old one. `tools/models` fetches weights and data.
#include <memory>
#include <string>
#include <vector>

#include "isomer/study/cell.h"
#include "isomer/train/convert.h"
#include "isomer/train/distil.h"

namespace isomer::study {

/// The folder of what `tools/models NAME` fetches. Throws Error saying so when it is not there.
[[nodiscard]] std::string model_folder(const std::string& name);

/// A recipe's task and training on the model of a folder, with its weights. `own`: the model as it is, whatever head the task
/// asks for.
enum class Head : std::uint8_t { of_task, own };
[[nodiscard]] std::unique_ptr<Session> pretrained(const Recipe& recipe, const std::string& folder, const Overrides& task,
                                                  Head head, Context& context);

/// The model with the mixers that the recipe's layers name, in all layers but those that stay softmax. Where the recipe names one
/// mixer it stands in every layer.
struct ConvertedModel {
  std::unique_ptr<Session> session;
  std::vector<ConvertedParameter> fates;
};
[[nodiscard]] ConvertedModel convert_as(const Recipe& recipe, Session& from, Context& context);

/// Attention transfer of the layers that have something new to learn, for so many steps.
void transfer_new(Session& from, ConvertedModel& to, Index steps, Context& context);

/// What distillation found, as a cell's curve: the distance to the old model on test examples at every look.
[[nodiscard]] std::vector<CellPoint> distilled(Session& from, ConvertedModel& to, const TrainRecipe& train, Context& context,
                                               const CellProgress& progress);

/// Spearman's rank correlation; equal values share their ranks.
[[nodiscard]] double spearman(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace isomer::study
