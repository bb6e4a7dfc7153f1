// libFuzzer: whatever the bytes, a tokenizer is read or refused with Error; what was read is written and read back the same, and
// takes any text.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "isomer/base/error.h"
#include "isomer/models/tokenizer.h"
#include "isomer/models/tokenizers/chat.h"
#include "isomer/models/tokenizers/given_parts.h"

namespace {
using isomer::Tokenizer;

template <class F>
void may_refuse(F&& f) {
  try {
    f();
  } catch (const isomer::Error&) {
  }
}

void use(const Tokenizer& tokenizer, const std::string& text) {
  may_refuse([&] {
    const isomer::TokenizerInput input = tokenizer.encode_pair(text, "The 12 roads' <s>e\xcc\x81</s>\xff \xe4\xb8\xad");
    if (input.tokens.size() != input.types.size()) std::abort();
    for (const std::int64_t token : input.tokens)
      if (token < 0 || token >= tokenizer.vocabulary()) std::abort();
    (void)tokenizer.decode(input.tokens);
    (void)tokenizer.decode_next(input.tokens);
  });
}

void read(const std::string& json) {
  may_refuse([&] {
    const auto tokenizer = isomer::tokenizer_from(json, "tokenizer.json", 256);
    const std::string written = tokenizer->to_json();
    if (isomer::tokenizer_from(written, "tokenizer.json", 256)->to_json() != written) std::abort();
    if (tokenizer->is_text()) use(*tokenizer, json);
  });
}

/// A good tokenizer.json with the bytes as one of its parts: the rules behind the parser are reached sooner.
void read_as(const std::string& key, const std::string& bytes) {
  const auto part = [&](const char* name, const char* fallback) {
    return std::string(", \"") + name + "\": " + (key == name ? bytes : fallback);
  };
  for (const std::string model : {R"({"type": "BPE", "byte_fallback": true, "merges": ["a b"], "vocab": )",
                                  R"({"type": "WordPiece", "unk_token": "a", "vocab": )"})
    read(R"({"version": "1.0")" + part("added_tokens", R"([{"id": 3, "content": "<s>"}])") + part("normalizer", "null") +
         part("pre_tokenizer", "null") + part("decoder", "null") + part("post_processor", "null") + R"(, "model": )" +
         (key == "model" ? bytes : model + (key == "vocab" ? bytes : R"({"a": 0, "b": 1, "ab": 2, "▁": 4, "<0xFF>": 5})") + "}") +
         "}");
}

void converse(const std::string& bytes) {
  const std::vector<isomer::ChatMessage> messages{{"user", bytes}};
  may_refuse([&] { (void)isomer::chat_text(isomer::chat_template_from(bytes), messages); });
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 12) {
    case 0: read(R"({"version": 1, "name": "words", "words": [)" + bytes + "]}"); break;
    case 1: read_as("added_tokens", bytes); break;
    case 2: read_as("normalizer", bytes); break;
    case 3: read_as("pre_tokenizer", bytes); break;
    case 4: read_as("decoder", bytes); break;
    case 5: read_as("post_processor", bytes); break;
    case 6: read_as("model", bytes); break;
    case 7: read_as("vocab", bytes); break;
    case 8: read_as("normalizer", R"({"type": "Precompiled", "precompiled_charsmap": ")" + bytes + "\"}"); break;
    case 9: may_refuse([&] { use(*isomer::llama2c_tokenizer(bytes, "t", 8), bytes); }); break;
    case 10: converse(bytes); break;
    default: read(bytes);
  }
  return 0;
}
