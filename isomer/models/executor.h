#pragma once
// What runs a model: a tape and the scratch of a context over weights that it only reads. One a thread, any number over one
// model.
//
//   const Model<float> model(config, parameters);
//   initialise(parameters, seed);
//   Executor<float> executor(model, context, Record::yes);          // training
//   const ModelResult r = executor.loss({.B = 32, .T = 128, .tokens = tokens, .labels = labels}, {.seed = seed, .step = step});
//   executor.backward();                                            // adds to the gradients of all parameters
//
//   ModelState<float> state = model.start(1);                       // language models: streaming
//   View<const float, 2> logits = executor.prefill(state, prompt);
//   logits = executor.step(state, {&token, 1});
//
// Gradients belong to the parameters: of the executors over one model only one at a time may go back. What a call gives back is
// valid until the next one.
#include "isomer/models/model.h"

namespace isomer {

template <class T>
class Executor {
 public:
  Executor(const Model<T>& model, Context& context, Record record = Record::no) : model_(model), tape_(context, record) {}

  [[nodiscard]] const Model<T>& model() const { return model_; }
  [[nodiscard]] Tape<T>& tape() { return tape_; }

  /// As Model::loss, prefill and step.
  ModelResult loss(const ModelInput& in, const Pass& pass = {}) {
    tape_.clear();
    return model_.loss(tape_, in, pass);
  }
  void backward() { tape_.backward(); }
  View<const T, 2> prefill(ModelState<T>& state, std::span<const std::int64_t> tokens,
                           std::span<const std::int64_t> offsets = {}) {
    return model_.prefill(tape_, tokens, state, offsets);
  }
  View<const T, 2> step(ModelState<T>& state, std::span<const std::int64_t> tokens) { return model_.step(tape_, tokens, state); }

 private:
  const Model<T>& model_;
  Tape<T> tape_;
};

}  // namespace isomer
