#pragma once
// Everything that a recipe stands for, ready to work: task, model, parameters, optimiser. One step at a time; the loop with its
// folder and messages is trainer.h.
//
//   Session session(recipe, context);
//   session.resume(folder.load_latest());
//   const StepReport step = session.step();
//   const EvalReport eval = session.evaluate({.examples = 512});
//
// A step is: loss and backward on every part of the batch (train.accumulate) → gradients in one array a group → [sums over those
// who train with it] → step of the optimiser. It depends on (recipe, step number) and the state before it alone: data, dropout
// and the stochastic window are drawn by counters. So a resumed run continues bit by bit, and threads change nothing.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "isomer/models/model_folder.h"
#include "isomer/nn/optimiser.h"
#include "isomer/nn/schedule.h"
#include "isomer/tasks/score.h"
#include "isomer/train/recipe_model.h"
#include "isomer/train/run_folder.h"

namespace isomer {

/// Views of the batch.
[[nodiscard]] ModelInput input_of(const Batch& batch);

struct StepReport {
  Index step = 0;  // how many are done
  double loss = 0, lr = 0, gradient_norm = 0;
  Index tokens = 0;
  double data_seconds = 0, seconds = 0;  // making the batch; the whole step
};

struct EvalReport {
  double loss = 0, value = 0;  // of the task's metric
  Metric metric = Metric::token_accuracy;
  Index examples = 0;
  Index shortest = 0, longest = 0;  // tokens, or vectors, of an example
  Split split = Split::test;
};

/// Several sessions that train one model, each on a part of every batch: how they become one step. All must call it alike.
struct Reduction {
  std::function<double(double)> sum;                // of a number of each
  std::function<void(std::span<float>)> sum_array;  // of arrays of the same size, in place
};

/// What a session's parameters start with: numbers that are drawn, or zeros, where others come from elsewhere. Drawing takes
/// longer than reading a file.
enum class Weights : std::uint8_t { drawn, zero };

class Session {
 public:
  Session(const Recipe& recipe, Context& context, Weights weights = Weights::drawn);
  /// With the recipe's task, task_of(recipe), made already: its data may be large.
  Session(const Recipe& recipe, std::unique_ptr<Task> task, Context& context, Weights weights = Weights::drawn);
  /// With a model that is there already, whatever the recipe says of models. The task is made when it is first needed.
  Session(const Recipe& recipe, const ModelConfig& model, Context& context, Weights weights = Weights::drawn);

  /// Throws NotFinite with the step and the layer that first produced such a value; parameters are those of the step before.
  StepReport step();
  /// From the next step on: losses and gradients are means over the labels of all.
  void reduce_with(Reduction reduction) { reduction_ = std::move(reduction); }
  struct EvalOptions {
    Index examples = 512, batch = 0;  // 0: the recipe's
    Split split = Split::test;
    Index first = 0;  // the first of them: those of another choice were seen by nobody
  };
  [[nodiscard]] EvalReport evaluate(const EvalOptions& options);

  [[nodiscard]] Index steps_done() const { return done_; }
  [[nodiscard]] const Recipe& recipe() const { return recipe_; }
  /// Throws Error when it does not fit the model, or when its data is not there.
  [[nodiscard]] const Task& task() const;
  /// Another task for the same weights; see with_task(). Throws Error as task() does.
  void use_task_of(const Recipe& recipe);
  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] Model<float>& model() { return *model_; }
  [[nodiscard]] Parameters<float>& parameters() { return parameters_; }

  /// Parameters, optimiser and step; `extra` goes into state.json beside them. Throws NotFinite for weights that are not finite.
  [[nodiscard]] Checkpoint checkpoint(const std::string& extra_json = "{}");
  /// Throws OtherModel when the checkpoint is of another model than the recipe's, and Error when it is of a newer version.
  void resume(const Checkpoint& checkpoint);
  /// Has the task read what it had read when the checkpoint was made?
  [[nodiscard]] bool has_data_of(const Checkpoint& checkpoint) const;
  /// The weights alone, to look at how they do on another task.
  void resume_weights(const Checkpoint& checkpoint);
  /// For a model that reads and writes as the other one does.
  void take_tokenizer(const Session& other) { tokenizer_ = other.tokenizer_; }

 private:
  void prepare(Weights weights);
  void freeze();
  /// Made when it is first needed: who only evaluates or generates has no memory for it.
  [[nodiscard]] Optimiser<float>& optimiser();
  [[nodiscard]] Pass pass_of(Index step) const;
  /// Runs the batch forward and backward, a part at a time, and returns its share of the mean loss over `labels`. Gradients add
  /// up.
  double backward(Pass pass, double labels);
  [[noreturn]] void fail_not_finite(const char* what, const std::string& where);

  Recipe recipe_;
  Context& context_;
  mutable std::unique_ptr<Task> task_;
  ModelConfig config_;
  std::string tokenizer_;  // of a run that was opened
  Parameters<float> parameters_;
  std::unique_ptr<Model<float>> model_;
  OptimiserOptions optimiser_options_;
  std::unique_ptr<Optimiser<float>> optimiser_;
  Schedule schedule_;
  Tape<float> tape_;
  Batch batch_;
  Reduction reduction_;
  Index done_ = 0;
};

/// The session of a run with the weights of its last checkpoint, or of another one (run_path() in models/model_files.h), to look
/// at and to evaluate; trainer.h resumes training. The data of its task is needed by evaluate() alone; load_model()
/// (models/model_folder.h) gives the model without a session.
[[nodiscard]] std::unique_ptr<Session> open_run(const std::string& path, Context& context);
/// A model that belongs to no run (models/model_folder.h) on a task, whose options are at their defaults; texts are read by the
/// model's own tokenizer where its folder has one.
[[nodiscard]] std::unique_ptr<Session> open_model_on(const std::string& path, const std::string& task, Context& context);
/// The run's weights on another task, or on its own (empty) with other options; see with_task(). Throws Error when its model
/// cannot read the task's inputs or give its answers.
[[nodiscard]] std::unique_ptr<Session> open_run_on(const std::string& path, const std::string& task, const Overrides& options,
                                                   Context& context);

}  // namespace isomer
