#pragma once
// What a recipe says of its task and model, put together.
//
//   const std::unique_ptr<Task> task = task_of(recipe);
//   const ModelConfig config = model_of(recipe, task->shape());
#include <memory>
#include <string>

#include "isomer/models/config.h"
#include "isomer/models/tokenizer.h"
#include "isomer/nn/schedule.h"
#include "isomer/tasks/task.h"
#include "isomer/train/recipe.h"

namespace isomer {

/// The model that a recipe describes for a task. Errors name the line of the recipe.
[[nodiscard]] ModelConfig model_of(const Recipe& recipe, const TaskShape& task);
/// Its layers alone.
[[nodiscard]] std::vector<LayerConfig> layer_configs(const Recipe& recipe);
[[nodiscard]] std::unique_ptr<Task> task_of(const Recipe& recipe);
/// A model that is there already (model.from) reads texts with the tokenizer that it comes with, unless the task names another.
void use_own_tokenizer(Recipe& recipe);
/// The model whose weights a run begins with: train.start, or model.from; empty: none.
[[nodiscard]] const std::string& start_of(const Recipe& recipe);

/// The recipe with every option of its task and mixers that has an effect; it gives the same run. What [mixer.all] says stands at
/// the presets that know it.
[[nodiscard]] Recipe resolved(const Recipe& recipe);

/// How the learning rate changes. Throws Error with the line of the recipe for numbers that make no run: more warm-up than steps,
/// a batch in more parts than it has examples.
[[nodiscard]] Schedule schedule_of(const Recipe& recipe);

/// Options of [mixer.all] that no layer has.
[[nodiscard]] std::vector<std::string> unused_shared_options(const Recipe& recipe);
/// Where --set has put other layers in place of the file's, options that the file gives to all and none of them has are gone.
void forget_options_of_other_layers(Recipe& recipe);

/// A model may know more tokens and classes than a task has. Throws Error "NAME: …" when it cannot read the task's inputs or give
/// its answers.
void require_fit(const ModelConfig& model, const TaskShape& task, const std::string& name);

/// How a task writes its tokens; null if it has none.
[[nodiscard]] std::unique_ptr<Tokenizer> tokenizer_of(const Task& task);

}  // namespace isomer
