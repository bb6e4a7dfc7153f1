#include "isomer/models/tokenizers/chat.h"

#include <vector>

#include "isomer/base/error.h"
#include "isomer/io/json.h"
#include "isomer/models/tokenizers/json_parts.h"

namespace isomer {

namespace {
constexpr const char* kChat = "chat";

bool has(std::string_view text, std::string_view mark) { return text.find(mark) != std::string_view::npos; }

/// A text that the template writes itself between two marks; empty: it writes none there.
std::string written_between(std::string_view text, std::string_view begin, std::string_view end) {
  for (std::size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1)) {
    std::string_view rest = text.substr(at + begin.size());
    // The end of a line, as it is or as it is written in a string of the template.
    if (rest.starts_with("\\n"))
      rest.remove_prefix(2);
    else if (rest.starts_with('\n'))
      rest.remove_prefix(1);
    else
      continue;
    const std::string_view found = rest.substr(0, rest.find(end));
    if (found.size() < rest.size() && !found.empty() && found.find_first_of("'\"{}") == std::string_view::npos)
      return std::string(found);
  }
  return {};
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

void append(std::string& to, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) to += part;
}

/// User and assistant in turn, and the system at most once, in front.
void expect_turns(std::span<const ChatMessage> messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string_view expected = i % 2 == 0 ? "user" : "assistant";
    require(messages[i].role == expected, kChat, "expected user and assistant in turn, got ", messages[i].role, " in place of ",
            expected);
  }
}

std::string llama2(std::string_view system, std::span<const ChatMessage> messages) {
  expect_turns(messages);
  std::string text;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    std::string content = messages[i].content;
    if (i == 0 && !system.empty()) content = "<<SYS>>\n" + std::string(system) + "\n<</SYS>>\n\n" + content;
    if (messages[i].role == "user")
      append(text, {"<s>[INST] ", trimmed(content), " [/INST]"});
    else
      append(text, {" ", trimmed(content), " </s>"});
  }
  return text;
}

std::string gemma(std::string_view system, std::span<const ChatMessage> messages, bool answer) {
  expect_turns(messages);
  std::string text = "<bos>";
  for (std::size_t i = 0; i < messages.size(); ++i) {
    append(text, {"<start_of_turn>", messages[i].role == "user" ? "user" : "model", "\n"});
    if (i == 0 && !system.empty()) append(text, {system, "\n\n"});
    append(text, {trimmed(messages[i].content), "<end_of_turn>\n"});
  }
  if (answer) text += "<start_of_turn>model\n";
  return text;
}

/// Forms that write every message in the same way.
std::string plain(ChatForm form, std::span<const ChatMessage> messages, bool answer) {
  std::string text = form == ChatForm::llama3 ? "<|begin_of_text|>" : "";
  const auto write = [&](std::string_view role, std::string_view content) {
    if (form == ChatForm::chatml)
      append(text, {"<|im_start|>", role, "\n", content, "<|im_end|>\n"});
    else if (form == ChatForm::llama3)
      append(text, {"<|start_header_id|>", role, "<|end_header_id|>\n\n", trimmed(content), "<|eot_id|>"});
    else
      append(text, {"<|", role, "|>\n", content, "</s>\n"});
  };
  for (const ChatMessage& message : messages) write(message.role, message.content);
  if (answer)
    text += form == ChatForm::chatml   ? "<|im_start|>assistant\n"
            : form == ChatForm::llama3 ? "<|start_header_id|>assistant<|end_header_id|>\n\n"
                                       : "<|assistant|>\n";
  return text;
}
}  // namespace

ChatTemplate chat_template_from(std::string_view text) {
  if (has(text, "<|im_start|>")) return {ChatForm::chatml, written_between(text, "<|im_start|>system", "<|im_end|>")};
  if (has(text, "<|start_header_id|>")) {
    require(!has(text, "Cutting Knowledge Date"), kChat,
            "expected a template whose text depends on the messages alone, got that of Llama 3.1, which writes dates");
    return {ChatForm::llama3};
  }
  if (has(text, "[INST]") && has(text, "<<SYS>>")) return {ChatForm::llama2};
  if (has(text, "<start_of_turn>")) return {ChatForm::gemma};
  if (has(text, "<|user|>") && has(text, "<|assistant|>") && !has(text, "<|end|>")) return {ChatForm::zephyr};
  fail(kChat, "expected a template of a form that is known (ChatML, Llama 2, Llama 3, Zephyr, Gemma), got ",
       text.size() > 80 ? std::string(text.substr(0, 80)) + "…" : std::string(text));
}

std::string chat_template_of_config(std::string_view json, const std::string& name) {
  const Json config = Json::parse(json, name);
  try {
    const Json* found = tokenizers::member(config, "chat_template");
    if (found == nullptr) return {};
    if (found->is_string()) return found->text();
    // Several, by name.
    for (const Json& entry : found->items())
      if (entry.at("name").text() == "default") return entry.at("template").text();
    return {};
  } catch (const Error& problem) {
    throw Error(name + ": " + problem.what());
  }
}

std::string chat_text(const ChatTemplate& form, std::span<const ChatMessage> messages, bool answer) {
  require(!messages.empty(), kChat, "expected messages, got none");
  std::vector<ChatMessage> all(messages.begin(), messages.end());
  if (all[0].role != "system" && !form.system.empty()) all.insert(all.begin(), {"system", form.system});
  const std::size_t first = all[0].role == "system" ? 1 : 0;
  for (std::size_t i = first; i < all.size(); ++i) {
    const bool known =
        all[i].role == "user" || all[i].role == "assistant" || (all[i].role == "system" && form.form == ChatForm::chatml);
    require(known, kChat, "expected messages of user and assistant behind one of the system, got one of ", all[i].role);
  }
  const std::string_view system = first > 0 ? std::string_view(all[0].content) : std::string_view();
  const std::span<const ChatMessage> others = std::span(all).subspan(first);
  switch (form.form) {
    case ChatForm::llama2: return llama2(system, others);
    case ChatForm::gemma: return gemma(system, others, answer);
    default: return plain(form.form, all, answer);
  }
}

}  // namespace isomer
