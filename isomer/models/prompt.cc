#include "isomer/models/prompt.h"

#include <algorithm>

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

bool ends(const LoadedModel& loaded, std::int64_t token) { return std::ranges::find(loaded.ends, token) != loaded.ends.end(); }

}  // namespace isomer
