#include "isomer/models/prompt.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "isomer/base/error.h"
#include "isomer/models/tokenizers/chat.h"

namespace isomer {

std::vector<std::int64_t> prompt_tokens(const LoadedModel& loaded, const std::string& text, const PromptOptions& options) {
  if (loaded.tokenizer == nullptr) throw Error("expected a model of tokens, got one of vectors");
  const Tokenizer& tokenizer = *loaded.tokenizer;
  if (options.chat) {
    if (loaded.chat_template.empty()) throw Error("expected a model that was taught conversations for a chat, got another");
    const ChatMessage question{"user", text};
    return tokenizer.encode(chat_text(chat_template_from(loaded.chat_template), {&question, 1}));
  }
  if (!options.first) return tokenizer.encode(text);
  std::vector<std::int64_t> tokens = tokenizer.encode_input(text).tokens;
  if (tokens.size() > 1 && ends(loaded, tokens.back())) tokens.pop_back();
  return tokens;
}

std::int64_t likeliest(std::span<const float> logits) {
  // Several largest ones side by side: one alone would wait for the comparison before it, as often as there are words.
  std::array<float, 8> most;
  most.fill(-std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + most.size() <= logits.size(); i += most.size())
    for (std::size_t lane = 0; lane < most.size(); ++lane)
      most[lane] = logits[i + lane] > most[lane] ? logits[i + lane] : most[lane];
  for (; i < logits.size(); ++i) most[0] = logits[i] > most[0] ? logits[i] : most[0];
  const auto found = std::ranges::find(logits, *std::ranges::max_element(most));
  return found == logits.end() ? 0 : found - logits.begin();
}

double probability_of(std::int64_t which, std::span<const float> logits) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double(logit) - double(logits[std::size_t(which)]));
  return 1 / sum;
}

bool ends(const LoadedModel& loaded, std::int64_t token) { return std::ranges::find(loaded.ends, token) != loaded.ends.end(); }

}  // namespace isomer
