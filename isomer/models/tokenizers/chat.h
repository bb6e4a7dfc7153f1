#pragma once
// Conversations as the text that a model was taught them in. A model says it by a template (chat_template of its
// tokenizer_config.json, tokenizer.chat_template of GGUF), a program that is not run here: the forms that are in use are
// recognised by their marks.
//
//   const ChatTemplate form = chat_template_from(text);
//   const std::vector<ChatMessage> messages{{"user", "Where does the river end?"}};
//   const auto prompt = tokenizer.encode(chat_text(form, messages));     // the text has its special tokens already
#include <span>
#include <string>
#include <string_view>

namespace isomer {

struct ChatMessage {
  std::string role, content;  // system, user or assistant
};

enum class ChatForm : unsigned char { chatml, llama2, llama3, zephyr, gemma };

struct ChatTemplate {
  ChatForm form = ChatForm::chatml;
  std::string system = {};  // what is written in front of messages that begin with none of the system
};

/// Of the text of a template. Throws Error for one that has the marks of no form.
[[nodiscard]] ChatTemplate chat_template_from(std::string_view text);
/// The text of the template in a tokenizer_config.json; empty: there is none.
[[nodiscard]] std::string chat_template_of_config(std::string_view json, const std::string& name);

/// `answer`: with what begins an answer of the assistant. Throws Error for roles that the form does not have, or not there.
[[nodiscard]] std::string chat_text(const ChatTemplate& form, std::span<const ChatMessage> messages, bool answer = true);

}  // namespace isomer
