#pragma once
// Continuations of prompts by a language model: one, or several at once, whose sequences stand at different positions.
//
//   Generator generator(*loaded, {.temperature = 0.8}, seed, context);
//   generator.read({loaded->tokenizer->encode("The "), loaded->tokenizer->encode("Once upon")});
//   for (int i = 0; i < 100; ++i) print(generator.next());                  // a token of each
//   generator.save("state.safetensors");                                    // goes on as if nothing had been between
//
// Sequence i draws with seed + i, and no sequence changes a bit of another: it says what it would say alone with its seed, for
// any number of threads.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "isomer/models/model_folder.h"
#include "isomer/train/sample.h"

namespace isomer {

class Generator {
 public:
  /// Throws Error for a model of another kind. The model must outlive it.
  Generator(const LoadedModel& loaded, const SampleOptions& options, std::uint64_t seed, Context& context);

  /// The first prompts begin a sequence each. Later ones go on with them, one for each; several after a single sequence are so
  /// many forks of it. An empty prompt adds nothing. Throws Error for another number of them, and for more tokens than the model
  /// has learned positions; then nothing has changed.
  void read(const std::vector<std::vector<std::int64_t>>& prompts);
  /// A token of each sequence, which it has seen then. Throws Error before the first token of a prompt.
  [[nodiscard]] std::span<const std::int64_t> next();

  /// 0 before anything was read.
  [[nodiscard]] Index sequences() const { return Index(samplers_.size()); }
  /// How many tokens the longest sequence can still take; a lot where nothing limits it.
  [[nodiscard]] Index room() const;
  [[nodiscard]] Index state_bytes() const;
  /// How often the weights are read for a token of each sequence.
  [[nodiscard]] Index passes() const { return Index(groups_.size()); }

  /// Throws Error as saved_state.h.
  void save(const std::string& path) const;
  void load(const std::string& path);

 private:
  [[nodiscard]] std::vector<ModelState<float>> apart() const;
  void together(const std::vector<ModelState<float>>& sequences, std::uint64_t drawn);

  const LoadedModel& loaded_;
  SampleOptions options_;
  std::uint64_t seed_;
  Tape<float> tape_;
  Index together_;                         // sequences of a group
  std::vector<ModelState<float>> groups_;  // all sequences
  std::vector<Sampler> samplers_;          // of each sequence
  std::vector<std::int64_t> tokens_;
};

}  // namespace isomer
