#pragma once
// A prompt as the tokens that a model was taught to go on from, and the tokens with which it ends what it says.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "isomer/models/model_folder.h"

namespace isomer {

struct PromptOptions {
  bool chat = false;  // the text is what a user says to a model that was taught conversations
  bool first = true;  // nothing came before, so that it begins as the model was taught
};

/// Throws Error for a model of vectors, and for a conversation with one that was taught none.
[[nodiscard]] std::vector<std::int64_t> prompt_tokens(const LoadedModel& loaded, const std::string& text,
                                                      const PromptOptions& options);
[[nodiscard]] bool ends(const LoadedModel& loaded, std::int64_t token);
/// The token with the largest logit, the first of several; 0 where none is a number.
[[nodiscard]] std::int64_t likeliest(std::span<const float> logits);
/// By softmax over all of them.
[[nodiscard]] double probability_of(std::int64_t which, std::span<const float> logits);

}  // namespace isomer
