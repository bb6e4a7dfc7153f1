#include "isomer/models/tokenizers/chat.h"

#include <gtest/gtest.h>

#include "tests/error_of.h"

namespace isomer {
namespace {
using tests::error_of;

const std::vector<ChatMessage> kAsk{{"user", " Where? "}};
const std::vector<ChatMessage> kTurns{{"system", "Be brief."}, {"user", "Where?"}, {"assistant", "There."}, {"user", "Why?"}};

// The texts below are what jinja makes of the templates of such models; that of Gemma is written by hand.
constexpr const char* kSmollm =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou are a "
    "helpful "
    "AI assistant named SmolLM, trained by Hugging Face<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% "
    "endif %}";

TEST(Chat, WritesChatMl) {
  const ChatTemplate plain =
      chat_template_from("{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>'}}");
  EXPECT_EQ(chat_text(plain, kAsk), "<|im_start|>user\n Where? <|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(
      chat_text(plain, kTurns, false),
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhere?<|im_end|>\n<|im_start|>assistant\nThere.<|im_end|>\n"
      "<|im_start|>user\nWhy?<|im_end|>\n");
  const ChatTemplate named = chat_template_from(kSmollm);
  EXPECT_EQ(named.system, "You are a helpful AI assistant named SmolLM, trained by Hugging Face");
  EXPECT_EQ(chat_text(named, kAsk),
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
            "<|im_start|>user\n Where? <|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(chat_text(named, kTurns), chat_text(plain, kTurns));
}

TEST(Chat, WritesLlama) {
  const ChatTemplate second = chat_template_from("… '<<SYS>>\\n' … bos_token + '[INST] ' + content.strip() + ' [/INST]' …");
  EXPECT_EQ(chat_text(second, kTurns),
            "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nWhere? [/INST] There. </s><s>[INST] Why? [/INST]");
  EXPECT_EQ(chat_text(second, kAsk), "<s>[INST] Where? [/INST]");
  const ChatTemplate third =
      chat_template_from("{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>' %}");
  EXPECT_EQ(chat_text(third, kAsk),
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nWhere?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(Chat, WritesOthers) {
  const ChatTemplate zephyr = chat_template_from("{{ '<|user|>\\n' + message['content'] + eos_token }} {{ '<|assistant|>' }}");
  EXPECT_EQ(chat_text(zephyr, kAsk), "<|user|>\n Where? </s>\n<|assistant|>\n");
  const ChatTemplate gemma = chat_template_from("{{ '<start_of_turn>' + role }}");
  EXPECT_EQ(chat_text(gemma, kTurns),
            "<bos><start_of_turn>user\nBe brief.\n\nWhere?<end_of_turn>\n<start_of_turn>model\nThere."
            "<end_of_turn>\n<start_of_turn>user\nWhy?<end_of_turn>\n<start_of_turn>model\n");
}

TEST(Chat, FindsTheTemplateOfAFile) {
  EXPECT_EQ(chat_template_of_config(R"({"chat_template": "x"})", "c.json"), "x");
  EXPECT_EQ(chat_template_of_config(
                R"({"chat_template": [{"name": "tools", "template": "y"}, {"name": "default", "template": "x"}]})", "c.json"),
            "x");
  EXPECT_EQ(chat_template_of_config("{}", "c.json"), "");
  EXPECT_EQ(error_of([] { (void)chat_template_of_config(R"({"chat_template": 1})", "c.json"); }),
            "c.json: expected an array, got a number");
}

TEST(Chat, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(error_of([] { (void)chat_template_from("{{ messages }}"); }),
            "chat: expected a template of a form that is known (ChatML, Llama 2, Llama 3, Zephyr, Gemma), got {{ messages }}");
  EXPECT_EQ(error_of([] { (void)chat_template_from("<|start_header_id|> Cutting Knowledge Date"); }),
            "chat: expected a template whose text depends on the messages alone, got that of Llama 3.1, which writes dates");
  const std::vector<ChatMessage> tool{{"user", "x"}, {"tool", "y"}}, twice{{"user", "x"}, {"user", "y"}};
  EXPECT_EQ(error_of([&] { (void)chat_text({}, tool); }),
            "chat: expected messages of user and assistant behind one of the system, got one of tool");
  EXPECT_EQ(error_of([&] { (void)chat_text({.form = ChatForm::llama2}, twice); }),
            "chat: expected user and assistant in turn, got user in place of assistant");
  EXPECT_EQ(error_of([] { (void)chat_text({}, {}); }), "chat: expected messages, got none");
}

}  // namespace
}  // namespace isomer
