#pragma once
// Conversions of pre-trained models, for claims: every softmax attention gives way to the mixers that a recipe names, its
// projections stay, and the new model learns from the old one. `tools/models` fetches weights and data.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "isomer/study/cell.h"
#include "isomer/train/convert.h"
#include "isomer/train/distil.h"

namespace isomer::study {

/// The folder of what `tools/models NAME` fetches. Throws Error saying so when it is not there.
[[nodiscard]] std::string model_folder(const std::string& name);

/// A recipe's task and training on the model of a folder, with its weights, or with those of a file that has all of them. `own`:
/// the model as it is, whatever head the task asks for.
enum class Head : std::uint8_t { of_task, own };
[[nodiscard]] std::unique_ptr<Session> pretrained(const Recipe& recipe, const std::string& folder, const Overrides& task,
                                                  Head head, Context& context, const std::string& weights = {});

/// What a claim makes of weights or of data when it is first needed, and keeps beside them.
struct Keepsake {
  std::string folder, name, extension;
  std::string made_of;  // every setting that it depends on
};
/// Where it is: FOLDER/study-NAME-KEY.EXTENSION, with a key of what it is made of, so that one of other settings is never found.
[[nodiscard]] std::string path_of(const Keepsake& what, Isa isa);
/// The same, once it has been made. Cells run side by side.
[[nodiscard]] std::string made_once(const Keepsake& what, Isa isa, const std::function<void(const std::string& path)>& make);

/// The model of a folder with a head for the task, tuned once with seed 1, whatever that of the recipe is: its weights stay in
/// the folder.
struct Tuning {
  Index steps = 0;
  double rate = 0;
  std::string freeze = {};  // parameters that stay as they are: prefixes with commas between
};
[[nodiscard]] std::unique_ptr<Session> tuned_once(const Recipe& recipe, const std::string& folder, const Overrides& task,
                                                  const std::string& name, const Tuning& tuning, Context& context,
                                                  const CellProgress& progress);

/// The model with the mixers that the recipe's layers name, in all layers but those that stay softmax. Where the recipe names one
/// mixer it stands in every layer.
struct ConvertedModel {
  std::unique_ptr<Session> session;
  std::vector<ConvertedParameter> fates;
};
[[nodiscard]] ConvertedModel convert_as(const Recipe& recipe, Session& from, Context& context);

/// Attention transfer of the layers that have something new to learn, for so many steps.
void transfer_new(Session& from, ConvertedModel& to, Index steps, Context& context);

/// One conversion: what is converted, what it learns from, and how it is scored.
struct Trial {
  std::string name;  // of what is converted, with the seed where its scores depend on it
  std::unique_ptr<Session> teacher;
  enum class Part : std::uint8_t { look, validation, test };  // of the examples: on the way, to choose by, to report
  std::function<double(Session&, Part)> score;
  bool lower_is_better = false;
  enum class From : std::uint8_t { teacher, labels };  // distillation, or training on the task
  From learns = From::teacher;
  Index transfer = 60;                                               // steps of attention transfer before
  Index looks = 8;                                                   // points of the curve, after that at step 0
  std::map<std::string, std::function<double(Session&)>> more = {};  // measured of what came out, and of the teacher
};

/// Converts as the recipe says, transfers, trains for the recipe's steps, and scores. Numbers: "at once" before anything was
/// learned, and more; of the model as it was "softmax", "softmax, looked at" and "softmax, …" of more. Throws Error "stopped"
/// when progress says so.
[[nodiscard]] CellResult run_trial(const Trial& trial, const Recipe& recipe, Context& context, const CellProgress& progress);

}  // namespace isomer::study
